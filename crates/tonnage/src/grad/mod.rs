//! Derivatives of functions: gradients, products with Jacobians from either side, functions that are
//! recomputed in the backward pass, and functions with a gradient of their own.
//!
//! All of it works on closures, on planned functions (call them in a closure) and inside of functions that
//! are traced. A derivative of a derivative is taken by nesting.

mod check;
mod checkpoint;
pub(crate) mod custom;
pub(crate) mod dual;
pub(crate) mod function;
pub(crate) mod level;
mod region;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source, TensorType};
use tonnage_ops::shape::reshape::RESHAPE;

use crate::dispatch::apply1;
use crate::make;
use crate::tape::GradientTape;
use crate::tensor::Tensor;
use crate::tree::Tree;
use dual::ForwardPass;

pub use check::{Check, check_gradients};
pub use checkpoint::checkpoint;
pub use custom::custom_gradient;

/// The gradient of a function that returns a scalar, with respect to all of its arguments.
///
/// ```
/// use tonnage::{Elementwise, Tensor, grad, tensor};
/// let slope = grad(|x: Tensor| x.square()?.sum_all());
/// assert_eq!(slope(tensor([1.0f32, -3.0])?)?.to_vec::<f32>()?, [2.0, -6.0]);
/// // The second derivative, of one element.
/// let curve = grad(grad(|x: Tensor| (&x * &x)?.mul(&x)));
/// assert_eq!(curve(tensor(2.0f32)?)?.scalar::<f32>()?, 12.0);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn grad<A: Tree>(f: impl Fn(A) -> Result<Tensor>) -> impl Fn(A) -> Result<A> {
    grad_wrt(f, A::share)
}

/// The gradient with respect to a part of the arguments: whatever `which` picks of them.
///
/// ```
/// use tonnage::{Tensor, grad_wrt, tensor};
/// let f = |(w, x): (Tensor, Tensor)| (w * x)?.sum_all();
/// let by_weight = grad_wrt(f, |(w, _)| w.clone());
/// let dw = by_weight((tensor([1.0f32, 2.0])?, tensor([3.0f32, 4.0])?))?;
/// assert_eq!(dw.to_vec::<f32>()?, [3.0, 4.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn grad_wrt<A: Tree, S: Tree>(
    f: impl Fn(A) -> Result<Tensor>,
    which: impl Fn(&A) -> S,
) -> impl Fn(A) -> Result<S> {
    let both = value_and_grad_wrt(f, which);
    move |arguments| both(arguments).map(|(_, grads)| grads)
}

/// The value and the gradient of a function that returns a scalar.
#[track_caller]
pub fn value_and_grad<A: Tree>(
    f: impl Fn(A) -> Result<Tensor>,
) -> impl Fn(A) -> Result<(Tensor, A)> {
    value_and_grad_wrt(f, A::share)
}

/// The value, and the gradient with respect to a part of the arguments.
#[track_caller]
pub fn value_and_grad_wrt<A: Tree, S: Tree>(
    f: impl Fn(A) -> Result<Tensor>,
    which: impl Fn(&A) -> S,
) -> impl Fn(A) -> Result<(Tensor, S)> {
    let source = Source::here();
    move |arguments| {
        let tape = GradientTape::new().watch_accessed_variables(false);
        let arguments = renewed(arguments, source)?;
        let chosen = which(&arguments);
        let leaves = float_leaves(&chosen, "grad").map_err(|e| e.at(source))?;
        tape.watch(&leaves);
        let value = f(arguments)?;
        tape.pause();
        if !value.dtype().is_float() || value.shape().elements().known() != Some(1) {
            let what = format!("the function returned {}", value.ty());
            let help = "return one float (`sum_all`, `mean_all`), or use `vjp`";
            return Err(bad_argument("grad", what, help).at(source));
        }
        let grads = gradients(tape, &value, None, &leaves, source)?;
        Ok((value, filled(chosen, grads)?))
    }
}

/// A function's result, and its backward pass: from gradients of the results to those of the arguments.
/// The backward pass can be gone once, and frees what it holds as it goes.
///
/// ```
/// use tonnage::{Elementwise, Tensor, tensor, vjp};
/// let (y, back) = vjp(|x: Tensor| x.exp(), tensor([0.0f32, 0.0])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0]);
/// assert_eq!(back.call(tensor([3.0f32, 5.0])?)?.to_vec::<f32>()?, [3.0, 5.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn vjp<A: Tree, R: Tree>(
    f: impl FnOnce(A) -> Result<R>,
    arguments: A,
) -> Result<(R, Vjp<A, R>)> {
    let source = Source::here();
    let tape = GradientTape::new().watch_accessed_variables(false);
    let arguments = renewed(arguments, source)?;
    let leaves = float_leaves(&arguments, "vjp").map_err(|e| e.at(source))?;
    tape.watch(&leaves);
    let chosen = arguments.share();
    let result = f(arguments)?;
    tape.pause();
    let back = Vjp { tape, arguments: chosen, result: result.share() };
    Ok((result, back))
}

/// The backward pass through a function; see [`vjp`].
pub struct Vjp<A, R> {
    tape: GradientTape,
    arguments: A,
    result: R,
}

impl<A: Tree, R: Tree> Vjp<A, R> {
    /// Gradients of the arguments, from those of the results: one for each float result, of its type.
    #[track_caller]
    pub fn call(self, grads: R) -> Result<A> {
        let source = Source::here();
        let pairs = leaves(&self.result).into_iter().zip(leaves(&grads));
        let (targets, given): (Vec<_>, Vec<_>) =
            pairs.filter(|(target, _)| target.dtype().is_float()).unzip();
        drop(grads);
        let sources = leaves(&self.arguments);
        let made = gradients(self.tape, &targets, Some(given), &sources, source)?;
        filled(self.arguments, made)
    }
}

/// A function's result, and how it moves where its arguments move along `tangents`: forward mode. It saves
/// nothing, so a loop takes the memory of one iteration however long it is.
///
/// Arguments that are no floats do not move; what stands for them among the tangents is not looked at.
///
/// ```
/// use tonnage::{Elementwise, Tensor, jvp, tensor};
/// let (y, dy) = jvp(|x: Tensor| x.square(), tensor([3.0f32])?, tensor([1.0f32])?)?;
/// assert_eq!((y.to_vec::<f32>()?, dy.to_vec::<f32>()?), (vec![9.0], vec![6.0]));
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn jvp<A: Tree, R: Tree>(
    f: impl FnOnce(A) -> Result<R>,
    arguments: A,
    tangents: A,
) -> Result<(R, R)> {
    let source = Source::here();
    let arguments = renewed(arguments, source)?;
    let (values, moves) = (leaves(&arguments), leaves(&tangents));
    if values.len() != moves.len() {
        let what = format!("{} tangents for {} tensors", moves.len(), values.len());
        return Err(bad_argument("jvp", what, "give one for each").at(source));
    }
    let pass = ForwardPass::open();
    for (i, (value, tangent)) in values.iter().zip(&moves).enumerate() {
        if value.dtype().is_float() {
            if value.ty() != tangent.ty() {
                let (of, given) = (value.ty(), tangent.ty());
                let what = format!("argument {i} is {of}, its tangent {given}");
                let help = "give a tangent of the argument's dtype and shape";
                return Err(bad_argument("jvp", what, help).at(source));
            }
            pass.set(value, tangent.clone());
        }
    }
    drop((values, moves, tangents));
    let result = f(arguments)?;
    let moved = result.share().map(&mut |t| match pass.get(&t) {
        Some(tangent) => Ok(tangent),
        None => make::zeros_of(&t.ty(), source),
    })?;
    Ok((result, moved))
}

/// The second derivative of a function that returns a scalar, times a vector: forward mode over the
/// gradient. It takes about twice the memory of the gradient, and never the matrix.
///
/// ```
/// use tonnage::{Tensor, hvp, tensor};
/// let cube = |x: Tensor| (&x * &x)?.mul(&x)?.sum_all();
/// let hv = hvp(cube, tensor([1.0f32, 2.0])?, tensor([1.0f32, 10.0])?)?;
/// assert_eq!(hv.to_vec::<f32>()?, [6.0, 120.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn hvp<A: Tree>(f: impl Fn(A) -> Result<Tensor>, arguments: A, vectors: A) -> Result<A> {
    Ok(jvp(grad(f), arguments, vectors)?.1)
}

fn leaves<A: Tree>(tree: &A) -> Vec<Tensor> {
    let mut all = Vec::new();
    tree.for_each(&mut |tensor| all.push(tensor.clone()));
    all
}

/// All tensors of a tree, which must be floats.
fn float_leaves<A: Tree>(tree: &A, call: &'static str) -> Result<Vec<Tensor>> {
    let all = leaves(tree);
    match all.iter().enumerate().find(|(_, t)| !t.dtype().is_float()) {
        Some((at, bad)) => {
            let what = format!("argument {at} is {}, and only floats have a gradient", bad.ty());
            Err(bad_argument(call, what, "pick the others by `grad_wrt`, or capture this one"))
        }
        None => Ok(all),
    }
}

/// The arguments as others than those that came in: a function may be given the same tensor twice, or
/// hold it besides, and only what comes through its arguments is to be differentiated. Views: no copies.
fn renewed<A: Tree>(arguments: A, source: Source) -> Result<A> {
    arguments.map(&mut |tensor| match tensor.dtype().is_float() {
        true => {
            let same = Attrs::Shape(tensor.shape());
            apply1(&RESHAPE, smallvec::smallvec![tensor.into()], same, source)
        }
        false => Ok(tensor),
    })
}

fn gradients<T: Tree>(
    mut tape: GradientTape,
    target: &T,
    given: Option<T>,
    sources: &[Tensor],
    source: Source,
) -> Result<Vec<(Option<Tensor>, TensorType)>> {
    let made = match &given {
        Some(given) => tape.gradient_from(target, given, sources),
        None => tape.gradient(target, sources),
    };
    drop(given);
    let made = made.map_err(|e| e.at(source))?;
    made.into_iter()
        .zip(sources)
        .map(|(grad, of)| match grad.is_unconnected() {
            true => Ok((None, of.ty())),
            false => Ok((Some(grad.tensor()?), of.ty())),
        })
        .collect()
}

/// A tree with these in the place of its tensors; zeros where there is none.
fn filled<S: Tree>(tree: S, grads: Vec<(Option<Tensor>, TensorType)>) -> Result<S> {
    let mut grads = grads.into_iter();
    tree.map(&mut |tensor| match grads.next() {
        Some((Some(grad), _)) => Ok(grad),
        Some((None, ty)) => make::zeros_of(&ty, Source::here()),
        None => Ok(tensor),
    })
}
