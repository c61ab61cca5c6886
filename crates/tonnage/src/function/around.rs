//! A budget around calls: every function that is called within has it, besides its own.

use std::cell::Cell;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Error, Result, Source};

thread_local! {
    static AROUND: Cell<Option<Bytes>> = const { Cell::new(None) };
}

/// Lets every function that `f` calls on this thread hold at most that many bytes, or be refused before it starts, as
/// [`Function::budget`](crate::Function::budget) does for one: a function with a budget of its own has the lesser. Plans for other budgets
/// are kept.
///
/// ```
/// use tonnage::{DType, Elementwise, GradientTape, Tensor, Variable, budgeted, function, random_normal};
/// let w = Variable::new("w", random_normal([64, 64], DType::F32)?)?;
/// let step = function(move |x: Tensor| {
///     let mut tape = GradientTape::new();
///     let mut h = x;
///     for _ in 0..32 {
///         h = h.matmul(&w.read()?)?.tanh()?;
///     }
///     let loss = h.square()?.mean_all()?;
///     w.assign_sub(&(tape.gradient(&loss, &w)?.tensor()? * 0.1)?)?;
///     Ok(loss)
/// });
/// let x = random_normal([1024, 64], DType::F32)?;
/// let (free, tight) = (step.plan(&x)?.peak(), budgeted("4MiB", || step.plan(&x))??.peak());
/// assert!(tight <= "4MiB".parse()? && free > "8MiB".parse()? && step.plan(&x)?.peak() == free);
/// assert!(budgeted("32KiB", || step.call(x))?.is_err());
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn budgeted<B, R>(bytes: B, f: impl FnOnce() -> R) -> Result<R>
where
    B: TryInto<Bytes>,
    Error: From<B::Error>,
{
    struct Restore(Option<Bytes>);
    impl Drop for Restore {
        fn drop(&mut self) {
            leave_budget(self.0);
        }
    }
    let source = Source::here();
    let bytes = bytes.try_into().map_err(|e| Error::from(e).at(source))?;
    let _before = Restore(enter_budget(bytes).map_err(|e| e.at(source))?);
    Ok(f())
}

/// Lets functions that are called on this thread from here on have that budget, within the one around; what held before. For
/// languages whose scopes are no closures: they bring that back by [`leave_budget`].
pub fn enter_budget(bytes: Bytes) -> Result<Option<Bytes>> {
    if bytes.is_zero() {
        let help = "give the bytes that calls may hold, such as \"512MiB\"";
        return Err(bad_argument("budgeted", "a budget of 0 bytes", help));
    }
    Ok(AROUND.replace(lesser(Some(bytes), around())))
}

/// Ends what [`enter_budget`] began, with what it returned.
pub fn leave_budget(before: Option<Bytes>) {
    AROUND.set(before);
}

/// The budget around calls on this thread.
#[inline]
pub fn around() -> Option<Bytes> {
    AROUND.get()
}

/// The lesser of two budgets, of which either may not be there.
#[inline]
pub(super) fn lesser(one: Option<Bytes>, other: Option<Bytes>) -> Option<Bytes> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
