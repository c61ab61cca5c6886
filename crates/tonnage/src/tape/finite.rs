//! Which op's result was the first that is not finite, for whoever looks for it in eager mode.
//!
//! Only ops that a tape records are looked at, so that the way of all others knows nothing of it.

use std::cell::RefCell;

use tonnage_core::Source;

use crate::ops::Elementwise;
use crate::tensor::Tensor;

thread_local! {
    /// `None` where nobody looks; then what was found.
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
    let bad = made.iter().find(|tensor| {
        let all = || tensor.is_finite()?.all(crate::Axes::ALL)?.scalar::<bool>();
        tensor.dtype().is_float() && !all().unwrap_or(true)
    });
    LOOKING.set(Some(
        bad.map(|tensor| format!("the result of `{op}`, {}, at {source},", tensor.ty())),
    ));
}
