//! Checking derivatives against differences, in random directions.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, ErrorKind, Result, Source};

use super::{float_leaves, grad, jvp, leaves, vjp};
use crate::make;
use crate::ops::Elementwise;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// What [`check_gradients`] compares, and how closely.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// 1 for first derivatives, 2 for those of the gradient as well.
    pub order: usize,
    /// Whether backward mode is checked.
    pub backward: bool,
    /// Whether forward mode is checked.
    pub forward: bool,
    /// The most that a derivative may be away from the difference, as a part of the larger of both and
    /// of 1; by default 1e-6 for f64, 1e-2 for f32, 0.1 for 16-bit floats.
    pub tolerance: Option<f64>,
}

impl Default for Check {
    /// First derivatives in both modes.
    fn default() -> Check {
        Check { order: 1, backward: true, forward: true, tolerance: None }
    }
}

/// Checks the derivatives of a function at some inputs against differences of its values, one input at a
/// time in a random direction. The error says which input, and both figures.
///
/// Differences are as exact as the inputs: give f64 where that matters. The function must give the same
/// result for the same inputs.
///
/// ```
/// use tonnage::{Check, Elementwise, Tensor, check_gradients, tensor};
/// let f = |x: Tensor| x.tanh()?.square();
/// let x = tensor([0.3f64, -1.2])?;
/// check_gradients(f, &x, Check { order: 2, ..Check::default() })?;
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn check_gradients<A: Tree, R: Tree>(
    f: impl Fn(A) -> Result<R>,
    inputs: &A,
    check: Check,
) -> Result<()> {
    let source = Source::here();
    run(&f, inputs, check, source).map_err(|e| e.at(source))
}

fn run<A: Tree, R: Tree>(
    f: &dyn Fn(A) -> Result<R>,
    inputs: &A,
    check: Check,
    source: Source,
) -> Result<()> {
    if !(1..=2).contains(&check.order) {
        let what = format!("derivatives of order {}", check.order);
        return Err(bad_argument("check_gradients", what, "use 1 or 2"));
    }
    let values = leaves(inputs);
    if values.iter().any(Tensor::is_symbolic) {
        return Err(tonnage_core::ErrorKind::Symbolic { what: "check_gradients" }.into());
    }
    first(f, inputs, check, "")?;
    if check.order == 2 {
        // The gradient of a random sum of the results is a function like any other.
        let seeds: Vec<Option<Tensor>> = leaves(&f(inputs.share())?)
            .iter()
            .map(|result| match result.dtype().is_float() {
                true => direction(result).map(Some),
                false => Ok(None),
            })
            .collect::<Result<_>>()?;
        let total = |arguments: A| -> Result<Tensor> {
            let results = leaves(&f(arguments)?);
            sum(results.iter().zip(&seeds).filter_map(|(r, s)| Some((r, s.as_ref()?))), source)
        };
        float_leaves(inputs, "check_gradients")?;
        first(&|arguments: A| grad(total)(arguments), inputs, check, "second ")?;
    }
    Ok(())
}

/// `sum(a * b)` over pairs.
fn sum<'t>(
    pairs: impl Iterator<Item = (&'t Tensor, &'t Tensor)>,
    source: Source,
) -> Result<Tensor> {
    let mut total: Option<Tensor> = None;
    for (a, b) in pairs {
        let part = a.mul(b)?.sum_all()?;
        total = Some(match total {
            Some(total) => total.add(&part)?,
            None => part,
        });
    }
    match total {
        Some(total) => Ok(total),
        None => make::fill(0.into(), DType::F64, tonnage_core::Shape::scalar(), source),
    }
}

fn direction(like: &Tensor) -> Result<Tensor> {
    make::random_normal(like.shape(), like.dtype())
}

fn dot(a: &Tensor, b: &Tensor) -> Result<f64> {
    let (a, b) = (numbers(a)?, numbers(b)?);
    Ok(a.iter().zip(&b).map(|(x, y)| x * y).sum())
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.cast(DType::F64)?.to_vec::<f64>()
}

fn first<A: Tree, R: Tree>(
    f: &dyn Fn(A) -> Result<R>,
    inputs: &A,
    check: Check,
    order: &'static str,
) -> Result<()> {
    let values = leaves(inputs);
    let results = leaves(&f(inputs.share())?);
    let seeds = results.iter().map(direction_or_zeros).collect::<Result<Vec<_>>>()?;
    for (input, value) in values.iter().enumerate().filter(|(_, v)| v.dtype().is_float()) {
        let along = direction(value)?;
        let slope = slope(f, inputs, input, &along, &seeds)?;
        let limit = check.tolerance.unwrap_or(tolerance(value.dtype()));
        let compare = |mode: &'static str, got: f64| -> Result<()> {
            let scale = got.abs().max(slope.abs()).max(1.0);
            // Not `>`: a NaN is a mismatch too.
            if (got - slope).abs() <= limit * scale {
                return Ok(());
            }
            let ty = value.ty();
            let mode = format!("the {order}derivative {mode}");
            Err(ErrorKind::WrongGradient { input, ty: ty.to_string(), mode, got, slope }.into())
        };
        if check.backward {
            let (result, back) = vjp(|x: Tensor| f(with(inputs, input, x)?), value.clone())?;
            let mut next = seeds.iter().cloned();
            let given = result.map(&mut |t| Ok(next.next().unwrap_or(t)))?;
            compare("backwards", dot(&back.call(given)?, &along)?)?;
        }
        if check.forward {
            let moved = |x: Tensor| f(with(inputs, input, x)?);
            let (_, tangents) = jvp(moved, value.clone(), along.clone())?;
            let mut total = 0.0;
            for (tangent, seed) in leaves(&tangents).iter().zip(&seeds) {
                total += dot(tangent, seed)?;
            }
            compare("forwards", total)?;
        }
    }
    Ok(())
}

fn direction_or_zeros(like: &Tensor) -> Result<Tensor> {
    match like.dtype().is_float() {
        true => direction(like),
        false => make::zeros_of(&like.ty(), Source::here()),
    }
}

/// The inputs with one tensor replaced.
fn with<A: Tree>(inputs: &A, input: usize, by: Tensor) -> Result<A> {
    let mut at = 0;
    inputs.share().map(&mut |tensor| {
        at += 1;
        Ok(if at - 1 == input { by.clone() } else { tensor })
    })
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-6,
        DType::F32 => 1e-2,
        _ => 0.1,
    }
}

/// The slope of `seeds . f` along a direction of one input, by differences over two distances: what is
/// left of the error falls with the fourth power of the distance.
fn slope<A: Tree, R: Tree>(
    f: &dyn Fn(A) -> Result<R>,
    inputs: &A,
    input: usize,
    along: &Tensor,
    seeds: &[Tensor],
) -> Result<f64> {
    let value = leaves(inputs).swap_remove(input);
    let step = match value.dtype() {
        DType::F64 => 1e-3,
        DType::F32 => 2e-2,
        _ => 1e-1,
    };
    let side = |step: f64| -> Result<f64> {
        let moved = value.add(&along.mul(step)?)?;
        let results = leaves(&f(with(inputs, input, moved)?)?);
        let mut total = 0.0;
        for (result, seed) in results.iter().zip(seeds).filter(|(r, _)| r.dtype().is_float()) {
            total += dot(result, seed)?;
        }
        Ok(total)
    };
    let central =
        |step: f64| Ok::<f64, tonnage_core::Error>((side(step)? - side(-step)?) / (2.0 * step));
    Ok((4.0 * central(step / 2.0)? - central(step)?) / 3.0)
}
