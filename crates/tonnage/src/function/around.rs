//! A budget around calls: every function that is called within has it, besides its own.

use std::cell::Cell;

use tonnage_core::{Error, Result, Source};

use super::budgets::{Budget, Budgets};

thread_local! {
    static AROUND: Cell<Budgets> = const { Cell::new(Budgets { bytes: None, least: false }) };
}

/// Lets every function that `f` calls on this thread hold at most that many bytes, or be refused before it starts, as
/// [`Function::budget`](crate::Function::budget) does for one: a function with a budget of its own has the lesser. `"least"` lets each
/// take as little as it can. Plans for other budgets are kept.
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
/// assert!(tight <= "4MiB".parse()? && free > "7MiB".parse()? && step.plan(&x)?.peak() == free);
/// let least = budgeted("least", || step.plan(&x))??.peak();
/// assert!(least <= tight && budgeted(least, || step.plan(&x))??.peak() == least);
/// assert!(budgeted("32KiB", || step.call(x))?.is_err());
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn budgeted<B, R>(budget: B, f: impl FnOnce() -> R) -> Result<R>
where
    B: TryInto<Budget>,
    Error: From<B::Error>,
{
    struct Restore(Budgets);
    impl Drop for Restore {
        fn drop(&mut self) {
            leave_budget(self.0);
        }
    }
    let source = Source::here();
    let budget = budget.try_into().map_err(|e| Error::from(e).at(source))?;
    let _before = Restore(enter_budget(budget).map_err(|e| e.at(source))?);
    Ok(f())
}

/// Lets functions that are called on this thread from here on have that budget, within the one around; what held before. For
/// languages whose scopes are no closures: they bring that back by [`leave_budget`].
pub fn enter_budget(budget: Budget) -> Result<Budgets> {
    Ok(AROUND.replace(around().and(budget.checked("budgeted")?.into())))
}

/// Ends what [`enter_budget`] began, with what it returned.
pub fn leave_budget(before: Budgets) {
    AROUND.set(before);
}

/// The budgets around calls on this thread.
#[inline]
pub fn around() -> Budgets {
    AROUND.get()
}
