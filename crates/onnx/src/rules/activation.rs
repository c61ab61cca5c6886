//! Activations, and softmax with its kin.

use tonnage::{Axes, DType, Elementwise, Result, Tensor};

use super::Rule;
use crate::call::{Call, one};
use crate::layout::axis_under;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Relu" => |c| match c.x(0)?.dtype().is_float() {
            true => one(c.x(0)?.relu()?),
            false => one(c.x(0)?.maximum(0)?),
        },
        "Sigmoid" => |c| one(c.x(0)?.sigmoid()?),
        "Softplus" => |c| one(c.x(0)?.softplus()?),
        "Softsign" => |c| one(c.x(0)?.softsign()?),
        "LeakyRelu" => |c| one(c.x(0)?.leaky_relu(c.float("alpha", 0.01f32.into())?)?),
        "Elu" => |c| one(c.x(0)?.elu(c.float("alpha", 1.0)?)?),
        "Selu" => |c| {
            let alpha = c.float("alpha", 1.673_263_192_176_818_8)?;
            one(c.x(0)?.elu(alpha)?.mul(c.float("gamma", 1.050_700_998_306_274_4)?)?)
        },
        "Celu" => |c| {
            let (x, alpha) = (c.x(0)?, c.float("alpha", 1.0)?);
            let negative = x.div(alpha)?.expm1()?.mul(alpha)?.minimum(0.0)?;
            one(x.maximum(0.0)?.add(&negative)?)
        },
        "HardSigmoid" => |c| {
            let (alpha, beta) = (c.float("alpha", 0.2f32.into())?, c.float("beta", 0.5)?);
            one(c.x(0)?.mul(alpha)?.add(beta)?.clip(0.0, 1.0)?)
        },
        "HardSwish" => |c| one(c.x(0)?.hard_swish()?),
        "ThresholdedRelu" => |c| {
            let x = c.x(0)?;
            one(x.greater(c.float("alpha", 1.0)?)?.where_(&x, &x.zeros_like()?)?)
        },
        "Shrink" => shrink,
        "Gelu" => |c| match c.text("approximate", "none")?.as_str() {
            "none" => one(c.x(0)?.gelu()?),
            "tanh" => one(c.x(0)?.gelu_tanh()?),
            other => Err(c.refuse(format!("the attribute `approximate` is `{other}`"))),
        },
        "Mish" => |c| one(c.x(0)?.softplus()?.tanh()?.mul(&c.x(0)?)?),
        "Swish" => |c| {
            let x = c.x(0)?;
            one(x.mul(c.float("alpha", 1.0)?)?.sigmoid()?.mul(&x)?)
        },
        "PRelu" => |c| {
            let (x, slope) = (c.x(0)?, c.x(1)?);
            // Before opset 7 one number a channel was said without the axes behind it.
            let slope = match (c.version < 7, slope.rank(), x.rank()) {
                (true, 1, rank) if rank > 2 => {
                    let mut shape = vec![1; rank - 1];
                    shape[0] = c.sizes(&slope)?[0];
                    slope.reshape(shape)?
                }
                _ => slope,
            };
            one(x.less(0)?.where_(&x.mul(&slope)?, &x)?)
        },
        "Clip" => clip,
        "Softmax" => |c| along(c, |x, axis| x.softmax(axis)),
        "LogSoftmax" => |c| along(c, |x, axis| x.log_softmax(axis)),
        "Hardmax" => |c| along(c, hardmax),
        "SwiGLU" => |c| {
            let a = c.x(0)?;
            one(a.mul(c.float("alpha", 1.0)?)?.sigmoid()?.mul(&a)?.mul(&c.x(1)?)?)
        },
        _ => return None,
    })
}

fn shrink(c: &Call) -> Result<Vec<Value>> {
    let (x, bias, lambda) = (c.x(0)?, c.float("bias", 0.0)?, c.float("lambd", 0.5)?);
    let dtype = x.dtype();
    let wide = if dtype.is_float() { x.clone() } else { x.cast(DType::F64)? };
    let inner = wide.greater(lambda)?.where_(&wide.sub(bias)?, &wide.zeros_like()?)?;
    one(wide.less(-lambda)?.where_(&wide.add(bias)?, &inner)?.cast(dtype)?)
}

fn clip(c: &Call) -> Result<Vec<Value>> {
    let mut x = c.x(0)?;
    match (c.maybe_float("min")?, c.maybe(1)?) {
        (Some(low), _) => x = x.maximum(low)?,
        (None, Some(low)) => x = x.maximum(&low)?,
        _ => {}
    }
    match (c.maybe_float("max")?, c.maybe(2)?) {
        (Some(high), _) => x = x.minimum(high)?,
        (None, Some(high)) => x = x.minimum(&high)?,
        _ => {}
    }
    one(x)
}

/// Along an axis; before opset 13 over all axes from one on.
fn along(c: &Call, run: impl Fn(&Tensor, i64) -> Result<Tensor>) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    if c.version >= 13 {
        let axis = c.int("axis", -1)?;
        return match c.under(&x) {
            Some(under) => {
                let axis = axis_under(c.axis(axis, x.rank())?, x.rank());
                one(c.first(run(&under, axis as i64)?)?)
            }
            None => one(run(&x, axis)?),
        };
    }
    let sizes = c.sizes(&x)?;
    let axis = c.int("axis", 1)?;
    let axis = if axis as usize == sizes.len() { sizes.len() } else { c.axis(axis, sizes.len())? };
    let (rows, columns): (usize, usize) =
        (sizes[..axis].iter().product(), sizes[axis..].iter().product());
    one(run(&x.reshape([rows, columns])?, 1)?.reshape(sizes)?)
}

/// 1 at the first of the largest, 0 elsewhere.
fn hardmax(x: &Tensor, axis: i64) -> Result<Tensor> {
    let largest = x.argmax(axis)?.expand_dims(axis)?;
    let sizes = x.shape();
    let at = sizes.axis("hardmax", axis)?;
    let mut shape = vec![1; x.rank()];
    shape[at] = sizes[at].known().unwrap_or(0);
    let places = tonnage::positions(sizes[at].clone(), DType::I64)?.reshape(shape)?;
    places.equal(&largest)?.cast(x.dtype())
}

/// All axes but the first two, those of an image with its channels in front.
pub fn spatial(rank: usize) -> Axes {
    let axes: Vec<i64> = (2..rank as i64).collect();
    Axes::from(&axes[..])
}
