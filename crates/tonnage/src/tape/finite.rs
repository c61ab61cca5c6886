//! Which op's result was the first that is not finite, for debugging in eager mode.
//!
//! Only ops that a tape records are looked at, so that the path of all others is untouched.
//!
//! Decision: `docs/decisions/loss-is-asserted.md`.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source};
use tonnage_runtime::Context;

use crate::ops::Elementwise;
use crate::tensor::Tensor;

thread_local! {
    /// `None` where nothing is checked; then what was found.
    static LOOKING: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Runs `f`, which opens a tape, and names the first result of an op in it that is not finite. How `f` itself ends says nothing more.
pub(crate) fn first_not_finite<R>(f: impl FnOnce() -> R) -> Option<String> {
    LOOKING.set(Some(None));
    f();
    LOOKING.take().flatten()
}

/// Looks at what an op made.
pub(crate) fn see(op: &'static str, made: &[Tensor], source: Source) {
    // Taken out meanwhile: the look is made of ops too.
    let Some(None) = LOOKING.with_borrow(|looking| looking.clone()) else { return };
    LOOKING.set(None);
    let bad = not_finite(made);
    LOOKING.set(Some(
        bad.map(|tensor| format!("the result of `{op}`, {}, at {source},", tensor.ty())),
    ));
}

/// Lets every op that runs now, op by op, fail where its result is not finite; or ends that.
pub fn check_numerics(on: bool) {
    Context::current().settings().check_numerics.store(on, Ordering::Relaxed);
}

/// Fails where results are to be finite and are not.
pub(crate) fn check(op: &'static str, made: &[Tensor], source: Source) -> Result<()> {
    if Context::current().settings().check_numerics.load(Ordering::Relaxed)
        && let Some(tensor) = not_finite(made)
    {
        let what = format!("its result, {}, has NaN or infinite values", tensor.ty());
        let help = "look at its inputs, or disable_check_numerics";
        return Err(bad_argument(op, what, help).at(source));
    }
    Ok(())
}

fn not_finite(made: &[Tensor]) -> Option<&Tensor> {
    made.iter().find(|tensor| {
        let all = || tensor.is_finite()?.all(crate::Axes::ALL)?.scalar::<bool>();
        tensor.dtype().is_float() && !all().unwrap_or(true)
    })
}
