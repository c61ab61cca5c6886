//! Functions with a gradient that their user wrote.
//!
//! Decision: `docs/decisions/gradients-without-a-tape.md`.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::grad::Returned;
use tonnage_core::graph::Graph;
use tonnage_core::row::Save;
use tonnage_core::{Kind, Result, Source, TensorType};
use tonnage_ops::control::custom::CUSTOM;

use super::{leaves, region};
use crate::dispatch::{self, OpContext, TensorArg};
use crate::tensor::Tensor;
use crate::trace::Trace;
use crate::tree::Tree;

/// A function with its own gradient. `forward` returns the result and what the gradient needs: that is
/// kept, and nothing else. `backward` takes it, and gradients of the results, and returns gradients of
/// the arguments.
///
/// Results or arguments that are needed are returned by `forward` as they are; they are saved without a
/// copy. What `forward` uses besides its arguments, variables and captured tensors, is differentiated as
/// usual; what `backward` uses besides is saved as it is when the function is called. Second derivatives are those of `backward`, and of what `forward` returned for it. Forward mode
/// is the transpose of `backward`. Where a result is no float, what stands for its gradient is zeros of
/// its type.
///
/// Both are traced, in eager mode too, so neither reads values.
///
/// ```
/// use tonnage::{Elementwise, GradientTape, Tensor, custom_gradient, tensor};
/// // log(1 + exp(x)), whose usual gradient overflows.
/// let softplus = custom_gradient(
///     |x: Tensor| {
///         let e = (&x).exp()?;
///         Ok(((&e + 1.0)?.log()?, e))
///     },
///     |e: Tensor, g: Tensor| g * (1.0 - (1.0 / (e + 1.0)?)?)?,
/// );
/// let x = tensor([100.0f32])?;
/// let mut tape = GradientTape::new();
/// tape.watch(&x);
/// let y = softplus(x.clone())?;
/// assert_eq!(tape.gradient(&y, &x)?.tensor()?.to_vec::<f32>()?, [1.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn custom_gradient<A: Tree, R: Tree, K: Tree>(
    forward: impl Fn(A) -> Result<(R, K)>,
    backward: impl Fn(K, R) -> Result<A>,
) -> impl Fn(A) -> Result<R> {
    let source = Source::here();
    move |arguments| {
        let called = || -> Result<R> { call(&forward, &backward, arguments, source) };
        called().map_err(|e| e.at(source))
    }
}

/// The same for a closure that returns its gradient as a closure, as other languages write it: what that one uses of
/// the forward pass is found as it is traced, and saved.
///
/// ```
/// use tonnage::{Elementwise, GradientTape, Tensor, bind, tensor};
/// let x = tensor([3.0f32])?;
/// let mut tape = GradientTape::new();
/// tape.watch(&x);
/// let y = bind::custom_gradient_with(x.clone(), |x: Tensor| {
///     let e = (&x).exp()?;
///     let back = { let e = e.clone(); move |g: Tensor| g * (e * 10.0)? };
///     Ok((e, back))
/// })?;
/// let slope = tape.gradient(&y, &x)?.tensor()?.to_vec::<f32>()?[0];
/// assert!((slope - 10.0 * 3f32.exp()).abs() < 1e-3);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn custom_gradient_with<A: Tree, R: Tree, B: FnOnce(R) -> Result<A>>(
    arguments: A,
    forward: impl FnOnce(A) -> Result<(R, B)>,
) -> Result<R> {
    let source = Source::here();
    let called = || {
        let types: Vec<TensorType> = leaves(&arguments).iter().map(Tensor::ty).collect();
        let mut back = None;
        let body = region::traced(&arguments, source, |symbols| {
            let (result, backward) = forward(symbols)?;
            let like = (result.share(), ());
            let pass =
                backward_pass(|(), grads| backward(grads), &arguments, &like, source, &types)?;
            // In here, what it captured are values of the forward pass: they are what is saved.
            let saved = pass.captured.clone();
            back = Some(pass);
            Ok((result, saved))
        })?;
        let mut back =
            back.ok_or_else(|| bad_argument("custom_gradient", "no backward pass", ""))?;
        back.captured.clear();
        joined(body, back, arguments, types, source)
    };
    called().map_err(|e| e.at(source))
}

fn call<A: Tree, R: Tree, K: Tree>(
    forward: impl FnOnce(A) -> Result<(R, K)>,
    backward: impl FnOnce(K, R) -> Result<A>,
    arguments: A,
    source: Source,
) -> Result<R> {
    let types: Vec<TensorType> = leaves(&arguments).iter().map(Tensor::ty).collect();
    let body = region::traced(&arguments, source, forward)?;
    let back = backward_pass(backward, &arguments, &body.result, source, &types)?;
    joined(body, back, arguments, types, source)
}

/// Both ways as one op, applied.
fn joined<A: Tree, R: Tree, K: Tree>(
    mut body: region::TracedClosure<(R, K)>,
    back: BackwardGraph,
    arguments: A,
    types: Vec<TensorType>,
    source: Source,
) -> Result<R> {
    let (results, count) = (leaves(&body.result.0).len(), leaves(&body.result.1).len());
    let mut saved = saved(&mut body.graph, results, count);
    let mut inputs = body.inputs(arguments)?;
    // What the backward pass uses besides goes in with the arguments, and is saved as it is now.
    for tensor in back.captured {
        saved.push(Save::Input(inputs.len()));
        let unused = body.graph.add_unused_input(tensor.ty(), Kind::Constant);
        body.graph.inputs.push(unused);
        inputs.push(tensor);
    }
    let returns = back.returns;
    let attrs = Attrs::Custom { args: types.len(), results, saved, returns, exact: false };
    let regions = vec![body.graph(), Arc::new(back.graph)];
    let inputs = inputs.into_iter().map(TensorArg::Owned).collect();
    let context = OpContext { regions, ..OpContext::at(source) };
    let mut made = dispatch::apply(&CUSTOM, inputs, attrs, context)?.into_vec();
    body.write(made.split_off(made.len() - body.written()))?;
    let mut made = made.into_iter();
    body.result.0.map(&mut |traced| Ok(made.next().unwrap_or(traced)))
}

/// What is saved, as inputs and outputs of the graph: a saved value that is neither becomes an output.
fn saved(graph: &mut Graph, results: usize, count: usize) -> Vec<Save> {
    let written = graph.outputs.split_off(results + count);
    let wanted = graph.outputs.split_off(results);
    let mut saved = Vec::new();
    for id in wanted {
        let input = graph.inputs.iter().position(|other| *other == id);
        let output = graph.outputs.iter().position(|other| *other == id);
        saved.push(match (input, output) {
            (Some(i), _) => Save::Input(i),
            (None, Some(i)) => Save::Output(i),
            (None, None) => {
                graph.outputs.push(id);
                Save::Output(graph.outputs.len() - 1)
            }
        });
    }
    graph.outputs.extend(written);
    saved
}

/// The backward pass: takes what is saved, what it captured, and gradients of the float results.
struct BackwardGraph {
    graph: Graph,
    /// For each argument.
    returns: Vec<Returned>,
    captured: Vec<Tensor>,
}

fn backward_pass<A: Tree, R: Tree, K: Tree>(
    backward: impl FnOnce(K, R) -> Result<A>,
    arguments: &A,
    (result, saved): &(R, K),
    source: Source,
    types: &[TensorType],
) -> Result<BackwardGraph> {
    let trace = Trace::begin_call(source);
    let first_grad = leaves(saved).len();
    let saved = saved.share().map(&mut |t| Ok(trace.argument(t.ty())))?;
    let grads = result.share().map(&mut |t| match t.dtype().is_float() {
        true => Ok(trace.argument(t.ty())),
        false => trace.within(|| crate::make::zeros_of(&t.ty(), source)),
    })?;
    let made = trace.within(|| backward(saved, grads))?;
    let mut texts = [String::new(), String::new()];
    arguments.describe(&mut texts[0]);
    made.describe(&mut texts[1]);
    let grads = leaves(&made);
    if texts[0] != texts[1] || grads.len() != types.len() {
        let what = format!("{} gradients for {} arguments", grads.len(), types.len());
        let help = "return one gradient for each tensor, nested as the arguments are";
        return Err(bad_argument("custom_gradient", what, help));
    }
    let (mut returns, mut outputs) = (Vec::new(), Vec::new());
    for (i, (grad, ty)) in grads.into_iter().zip(types).enumerate() {
        if !ty.dtype.is_float() {
            returns.push(Returned::Nothing);
            continue;
        }
        if grad.ty() != *ty {
            let what = format!("the gradient of argument {i} is {}, the argument {ty}", grad.ty());
            let help = "return a gradient of the argument's dtype and shape";
            return Err(bad_argument("custom_gradient", what, help));
        }
        returns.push(Returned::Dense);
        outputs.push(grad);
    }
    let traced = trace.finish(&outputs)?;
    if let Some(used) = traced.variables.iter().find(|used| used.written) {
        let what = format!("the backward pass writes variable `{}`", used.variable.name());
        return Err(bad_argument("custom_gradient", what, "write it in the forward function"));
    }
    let mut captured = traced.captured;
    for used in &traced.variables {
        captured.push(used.variable.read()?);
    }
    let mut graph = traced.graph;
    let more = graph.inputs.split_off(graph.inputs.len() - captured.len());
    let grads = graph.inputs.split_off(first_grad);
    graph.inputs.extend(more.into_iter().chain(grads));
    Ok(BackwardGraph { graph, returns, captured })
}
