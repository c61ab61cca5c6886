//! What a binding of another language is made of: ops by their rows, and the arrays under tensors.
//!
//! A program in Rust has no use for it: its ops are methods of [`Tensor`].

use std::collections::HashMap;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{OpDef, Result, Source, TensorType, World};
use tonnage_runtime::Array;

use crate::dispatch::{self, OpContext, TensorArg};
use crate::optim::Optimizer;
use crate::tape::{Gradient, IndexedSlices};
use crate::tensor::Tensor;
use crate::trace;
use crate::train::Sharding;
use crate::variable::Variable;

pub use crate::function::{Budgets, around as budget_around, enter_budget, leave_budget};
pub use crate::grad::custom::custom_gradient_with;
pub use crate::tape::finite::check_numerics;
pub use crate::tape::gradients;
pub use crate::variable::keep_in_files;
pub use tonnage_runtime::backend::set_packages;
pub use tonnage_runtime::interrupt::set_question;

/// Applies an op by its row.
///
/// ```
/// use tonnage::{bind, tensor};
/// let tanh = tonnage_ops::find("tanh").unwrap();
/// let x = tensor([0.0f32])?;
/// let made = bind::apply(tanh, &[&x], tonnage_core::attrs::Attrs::None)?;
/// assert_eq!(made[0].to_vec::<f32>()?, [0.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn apply(
    op: &'static OpDef,
    inputs: &[&Tensor],
    attrs: Attrs,
) -> Result<SmallVec<[Tensor; 1]>> {
    let inputs = inputs.iter().map(|tensor| TensorArg::Borrowed(tensor)).collect();
    dispatch::apply(op, inputs, attrs, OpContext::at(Source::here()))
}

/// Lets what is traced from here on take the state of variables, and as `sharding` says the variables, to be in blocks that ranks hold, of which `dense` says whose
/// gradients are no rows. Nothing is cut, and [`Sharding::Replicas`] takes it back: a plan says what it would take.
pub fn propose_blocks(
    optimizer: &Optimizer,
    world: &World,
    sharding: Sharding,
    variables: &[Variable],
    dense: &[bool],
) {
    optimizer.propose_blocks(world, sharding, variables, dense, &mut HashMap::new());
}

/// Whether ranks hold blocks of a variable: to read it is an op of all of them then.
pub fn is_in_blocks(variable: &Variable) -> bool {
    variable.is_cut()
}

/// The array under a tensor that has values.
pub fn array<'a>(tensor: &'a Tensor, what: &'static str) -> Result<&'a Array> {
    tensor.array(what)
}

/// A tensor over an array.
pub fn tensor(array: Array) -> Tensor {
    Tensor::from_array(array)
}

/// The identity of a tensor: the same number for handles of the same value.
pub fn identity(tensor: &Tensor) -> u64 {
    tensor.id()
}

/// The value of a tensor that has one, or that a few ops make of constants while a function is traced: sizes and axes may be computed.
///
/// ```
/// use tonnage::{Tensor, bind, function, tensor};
/// let f = function(|x: Tensor| {
///     let size = (tensor(vec![3i64])? + 1i64)?;
///     assert_eq!(bind::known(&size).unwrap().to_vec::<i64>()?, [4]);
///     assert!(bind::known(&x).is_none());
///     Ok(x)
/// });
/// f.call(tensor([1.0f32])?)?;
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn known(tensor: &Tensor) -> Option<Tensor> {
    trace::known(tensor)
}

/// Whether ops become nodes of a graph on this thread.
pub fn is_tracing() -> bool {
    trace::current().is_some()
}

/// Whether they become nodes of a body or a branch.
pub fn is_in_region() -> bool {
    trace::current().is_some_and(|trace| trace.is_region())
}

/// Runs `f` as if nothing were traced on this thread.
pub fn outside_of_traces<R>(f: impl FnOnce() -> R) -> R {
    trace::outside(f)
}

/// Runs `f` with arguments of those types in a trace of its own that is thrown away: for the types of what ops make.
///
/// # Errors
/// Those of `f`.
#[track_caller]
pub fn traced_apart(
    types: impl IntoIterator<Item = TensorType>,
    f: impl FnOnce(Vec<Tensor>) -> Result<()>,
) -> Result<()> {
    let source = Source::here();
    trace::outside(|| {
        let trace = trace::Trace::begin(source);
        let arguments = types.into_iter().map(|ty| trace.argument(ty)).collect();
        trace.within(|| f(arguments))
    })
}

/// Until it is dropped nothing is traced on this thread: [`outside_of_traces`] for what begins and ends in two calls.
/// Drop them in the opposite order of their making.
pub struct Outside(Vec<trace::Trace>);

impl Outside {
    /// From here on.
    pub fn begin() -> Outside {
        Outside(trace::take_away())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        trace::put_back(std::mem::take(&mut self.0));
    }
}

/// Which variable it is: no other one has the number.
pub fn variable_number(variable: &Variable) -> u64 {
    variable.number()
}

/// Some rows of a gradient of a type, as an optimizer takes them.
pub fn gradient_rows(whole: TensorType, indices: Tensor, values: Tensor) -> Gradient {
    Gradient::Rows(IndexedSlices::from_parts(whole, vec![(indices, values)]))
}

/// Rows along the first axis, as an update takes them.
pub fn rows(indices: Tensor, values: Tensor) -> IndexedSlices {
    let ty = values.ty();
    IndexedSlices::from_parts(ty, vec![(indices, values)])
}
