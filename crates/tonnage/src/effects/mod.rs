//! What a program does besides computing: printing, assertions, and closures of the program around.
//!
//! Effects run in the order of the program, each once: eagerly, in a function, and in every iteration of a loop or in
//! the branch that is taken. They are rows like all others (`tonnage_ops::host`), whose kernel is a closure that is
//! lent what kernels are lent: nothing is copied, and a plan's figures stay exact. What a closure obtains itself is in the
//! ledger, and in no plan.
//!
//! In a deferred graph an effect without results belongs to every run that computes what it looks at.
//!
//! Decision: `docs/decisions/callbacks-borrow-bytes.md`.

mod assert;
mod callback;
mod lent;
mod print;
pub mod prints;

pub use assert::{
    assert_all, assert_equal, assert_greater, assert_greater_equal, assert_less, assert_less_equal,
    assert_shape,
};
pub use callback::{host_callback, host_effect, pure_callback};
pub use lent::Lent;
pub use print::print;

use std::cell::Cell;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::lent::{In, Out};
use tonnage_core::{ErrorKind, HostCall, OpDef, Result, Source, TensorType};
use tonnage_runtime::system::is_stack_low;

use crate::dispatch::{OpContext, TensorArg, apply};
use crate::grad::level;
use crate::tensor::Tensor;
use crate::trace;

thread_local! {
    /// How many closures run inside of one another on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A closure that runs, until this is dropped.
struct CallbackScope;

impl CallbackScope {
    /// A closure may call the function that it is in, and without an end: that is an error before the stack overflows.
    fn new(source: Source) -> Result<CallbackScope> {
        let depth = DEPTH.get();
        if is_stack_low() {
            return Err(ErrorKind::Recursion { function: source, depth }.into());
        }
        DEPTH.set(depth + 1);
        Ok(CallbackScope)
    }
}

impl Drop for CallbackScope {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Applies an op that runs `run`.
pub(crate) fn host<F>(
    op: &'static OpDef,
    inputs: &[&Tensor],
    results: &[TensorType],
    label: String,
    source: Source,
    run: F,
) -> Result<SmallVec<[Tensor; 1]>>
where
    F: Fn(&[Lent], &mut [Out]) -> Result<()> + Send + Sync + 'static,
{
    let call = HostCall::new(label, move |inputs: &[In], outputs: &mut [Out]| {
        let lent: SmallVec<[Lent; 4]> = inputs.iter().map(Lent::new).collect();
        let _entered = CallbackScope::new(source)?;
        // Tapes and traces of this thread record the program, not what a callback of it does.
        trace::outside(|| level::apart(|| run(&lent, outputs)))
    });
    let attrs = Attrs::Host { call: Arc::new(call), results: results.to_vec() };
    let inputs = inputs.iter().map(|tensor| TensorArg::Borrowed(tensor)).collect();
    apply(op, inputs, attrs, OpContext::at(source))
}
