//! Quantized numbers: to them, from them, and products of them.

use tonnage::{DType, Elementwise, Result, Tensor};

use super::Rule;
use super::conv::convolved;
use super::linalg::product;
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "QuantizeLinear" => quantize_linear,
        "DequantizeLinear" => dequantize_linear,
        "DynamicQuantizeLinear" => dynamic,
        "MatMulInteger" => |c| {
            let a = centered(
                &c.x(0)?,
                c.maybe(2)?.map(|zero| as_rows(&zero)).transpose()?,
                DType::I32,
            )?;
            let b = centered(&c.x(1)?, c.maybe(3)?, DType::I32)?;
            one(product(&a, &b)?)
        },
        "ConvInteger" => |c| one(convolved_whole(c, [0, 1], [2, 3])?.cast(DType::I32)?),
        "QLinearMatMul" => |c| {
            let a = centered(&c.x(0)?, Some(as_rows(&c.x(2)?)?), DType::I32)?;
            let b = centered(&c.x(3)?, Some(c.x(5)?), DType::I32)?;
            let (a_scale, b_scale) = (as_rows(&c.x(1)?)?, c.x(4)?);
            let scale = a_scale.cast(DType::F32)?.mul(&b_scale.cast(DType::F32)?)?;
            let made = product(&a, &b)?.cast(DType::F32)?.mul(&scale)?;
            let zero = c.x(7)?;
            one(quantized(&made, &c.x(6)?.cast(DType::F32)?, Some(&zero), zero.dtype())?)
        },
        "QLinearConv" => |c| {
            let made = convolved_whole(c, [0, 3], [2, 5])?;
            let made = match c.maybe(8)? {
                Some(bias) => made.add(&per_channel(c, &bias.cast(made.dtype())?, made.rank())?)?,
                None => made,
            };
            let scale = c.x(1)?.mul(&c.x(4)?)?;
            let scale = per_channel(c, &scale, made.rank())?;
            let zero = c.x(7)?;
            let wide = made.cast(DType::F32)?.mul(&scale)?;
            one(quantized(&wide, &c.x(6)?, Some(&zero), zero.dtype())?)
        },
        _ => return None,
    })
}

/// A zero point for each row, laid along the rows.
fn as_rows(zero: &Tensor) -> Result<Tensor> {
    if zero.rank() == 1 && !zero.shape()[0].is(1) { zero.expand_dims(-1) } else { Ok(zero.clone()) }
}

/// One number a channel, over `[batch, channels, ...]`.
fn per_channel(c: &Call, x: &Tensor, rank: usize) -> Result<Tensor> {
    let mut shape = vec![1; rank.max(2) - 1];
    shape[0] = c.sizes(x)?.iter().product();
    x.reshape(shape)
}

fn centered(x: &Tensor, zero: Option<Tensor>, dtype: DType) -> Result<Tensor> {
    let x = x.cast(dtype)?;
    match zero {
        Some(zero) => x.sub(&zero.cast(dtype)?),
        None => Ok(x),
    }
}

/// A convolution of whole numbers, in floats that hold every sum exactly.
fn convolved_whole(c: &Call, at: [usize; 2], zeros: [usize; 2]) -> Result<Tensor> {
    let (x, w) = (c.x(at[0])?, c.x(at[1])?);
    let taps: usize = c.sizes(&w)?[1..].iter().product();
    let dtype = if taps * 255 * 255 < 1 << 24 { DType::F32 } else { DType::F64 };
    let x = centered(&x, c.maybe(zeros[0])?, dtype)?;
    let zero = match c.maybe(zeros[1])? {
        Some(zero) if zero.rank() == 1 => {
            let mut shape = vec![1; w.rank()];
            shape[0] = c.sizes(&zero)?[0];
            Some(zero.reshape(shape)?)
        }
        zero => zero,
    };
    convolved(c, &x, &centered(&w, zero, dtype)?, None)
}

/// Scale or zero point laid along an axis, or repeated for blocks along it.
fn laid(c: &Call, x: &Tensor, by: &Tensor) -> Result<Tensor> {
    let (axis, block) = (c.int("axis", 1)?, c.length(c.int("block_size", 0)?)?);
    if block > 0 {
        let axis = c.axis(axis, x.rank())?;
        let wide = by.repeat(block, axis as i64)?;
        let mut parts = vec![tonnage::Part::ALL; x.rank()];
        parts[axis] = (0..c.sizes(x)?[axis] as i64).into();
        return wide.slice(&parts);
    }
    match (by.rank(), x.rank()) {
        (1, rank) if rank > 1 && !by.shape()[0].is(1) => {
            let mut shape = vec![1; rank];
            shape[c.axis(axis, rank)?] = c.sizes(by)?[0];
            by.reshape(shape)
        }
        (1, 0) => by.reshape(tonnage::Shape::scalar()),
        _ => Ok(by.clone()),
    }
}

fn bounds(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::U16 => (0.0, 65535.0),
        DType::I16 => (-32768.0, 32767.0),
        _ => return None,
    })
}

/// Rounded to a multiple of the scale, and as far as the dtype goes.
fn quantized(x: &Tensor, scale: &Tensor, zero: Option<&Tensor>, dtype: DType) -> Result<Tensor> {
    let Some((low, high)) = bounds(dtype) else {
        let what = format!("quantized numbers of dtype {dtype}");
        return Err(tonnage_core::error::bad_argument("quantize", what, "use 8 or 16 bits"));
    };
    let steps = x.div(scale)?.cast(DType::F32)?.round()?;
    let steps = match zero {
        Some(zero) => steps.add(&zero.cast(DType::F32)?)?,
        None => steps,
    };
    steps.clip(low, high)?.cast(dtype)
}

fn quantize_linear(c: &Call) -> Result<Vec<Value>> {
    let (x, scale, zero) = (c.x(0)?, c.x(1)?, c.maybe(2)?);
    let dtype = match (&zero, c.maybe_dtype("output_dtype")?) {
        (Some(zero), _) => zero.dtype(),
        (None, Some(dtype)) => dtype,
        (None, None) => DType::U8,
    };
    if bounds(dtype).is_none() {
        return Err(c.refuse(format!("quantized numbers of dtype {dtype}")));
    }
    let scale = laid(c, &x, &scale)?;
    let zero = zero.map(|zero| laid(c, &x, &zero)).transpose()?;
    let wide = match c.maybe_dtype("precision")? {
        Some(dtype) => dtype,
        None => scale.dtype(),
    };
    one(quantized(&x.cast(wide)?, &scale.cast(wide)?, zero.as_ref(), dtype)?)
}

fn dequantize_linear(c: &Call) -> Result<Vec<Value>> {
    let (x, scale, zero) = (c.x(0)?, c.x(1)?, c.maybe(2)?);
    let dtype = c.maybe_dtype("output_dtype")?.unwrap_or(scale.dtype());
    let scale = laid(c, &x, &scale)?;
    let zero = zero.map(|zero| laid(c, &x, &zero)).transpose()?;
    let wide = if scale.dtype().size() < 4 { DType::F32 } else { scale.dtype() };
    let whole = match zero {
        Some(zero) => x.cast(DType::I32)?.sub(&zero.cast(DType::I32)?)?.cast(wide)?,
        None => x.cast(wide)?,
    };
    one(whole.mul(&scale.cast(wide)?)?.cast(dtype)?)
}

/// A tensor in 8 bits by its own range: whole steps, their size, and the step that is 0.
fn in_steps(x: &Tensor) -> Result<[Tensor; 3]> {
    let (low, high) = (x.min_all()?.minimum(0.0)?, x.max_all()?.maximum(0.0)?);
    let scale = high.sub(&low)?.div(255.0)?;
    let zero = low.neg()?.div(&scale)?.round()?.clip(0.0, 255.0)?;
    let steps = x.div(&scale)?.round()?.add(&zero)?.clip(0.0, 255.0)?;
    Ok([steps, scale, zero])
}

/// What 8 bits leave of a tensor, as floats: products of it are those of the whole numbers.
pub fn rounded(x: &Tensor) -> Result<Tensor> {
    let [steps, scale, zero] = in_steps(x)?;
    let made = steps.sub(&zero)?.mul(&scale)?;
    // Zeros alone have no range.
    scale.equal(0.0)?.where_(x, &made)
}

fn dynamic(c: &Call) -> Result<Vec<Value>> {
    let [steps, scale, zero] = in_steps(&c.x(0)?)?;
    Ok(vec![steps.cast(DType::U8)?.into(), scale.into(), zero.cast(DType::U8)?.into()])
}
