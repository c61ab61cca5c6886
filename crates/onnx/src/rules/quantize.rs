//! Quantized numbers: to them, from them, and products of them.

use tonnage::{DType, Elementwise, Result, Tensor, TensorType, bind, concat};

use super::Rule;
use super::windows::Windows;
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "QuantizeLinear" => quantize_linear,
        "DequantizeLinear" => dequantize_linear,
        "DynamicQuantizeLinear" => dynamic,
        "MatMulInteger" => |c| {
            let zeros = [c.maybe(2)?.map(|zero| as_rows(&zero)).transpose()?, c.maybe(3)?];
            one(whole_product(c, [0, 1], zeros)?)
        },
        "ConvInteger" => |c| one(c.first(whole_convolution(c, [0, 1], [2, 3])?)?),
        "QLinearMatMul" => |c| {
            let zeros = [Some(as_rows(&c.x(2)?)?), Some(c.x(5)?)];
            let (a_scale, b_scale) = (as_rows(&c.x(1)?)?, c.x(4)?);
            let scale = a_scale.cast(DType::F32)?.mul(&b_scale.cast(DType::F32)?)?;
            let made = whole_product(c, [0, 3], zeros)?.cast(DType::F32)?.mul(&scale)?;
            let zero = c.x(7)?;
            one(quantized(&made, &c.x(6)?.cast(DType::F32)?, Some(&zero), zero.dtype())?)
        },
        "QLinearConv" => |c| {
            let made = whole_convolution(c, [0, 3], [2, 5])?;
            let made = match c.maybe(8)? {
                Some(bias) => made.add(&bias.cast(DType::I32)?)?,
                None => made,
            };
            let wide = made.cast(DType::F32)?.mul(&c.x(1)?.mul(&c.x(4)?)?)?;
            let zero = c.x(7)?;
            one(c.first(quantized(&wide, &c.x(6)?, Some(&zero), zero.dtype())?)?)
        },
        _ => return None,
    })
}

/// A zero point for each row, laid along the rows.
fn as_rows(zero: &Tensor) -> Result<Tensor> {
    if zero.rank() == 1 && !zero.shape()[0].is(1) { zero.expand_dims(-1) } else { Ok(zero.clone()) }
}

/// Whether a zero point moves nothing.
fn is_nought(zero: &Tensor) -> Result<bool> {
    if zero.is_symbolic() {
        return Ok(false);
    }
    let numbers = bind::outside_of_traces(|| zero.cast(DType::I64)?.to_vec::<i64>())?;
    Ok(numbers.iter().all(|n| *n == 0))
}

/// A product of bytes `[..., rows, k]` and `[..., k, columns]`, with the zero points of both: those of the left one along rows, those of the right one along
/// columns. `sums` are those of the columns of the right one, `[..., 1, columns]`.
pub fn centered_product(
    a: &Tensor,
    b: &Tensor,
    zeros: [Option<Tensor>; 2],
    sums: impl Fn() -> Result<Tensor>,
) -> Result<Tensor> {
    let mut moves = [None, None];
    for (zero, moved) in zeros.into_iter().zip(&mut moves) {
        *moved = match zero {
            Some(zero) if !is_nought(&zero)? => Some(zero.cast(DType::I32)?),
            _ => None,
        };
    }
    let mut made = a.matmul_integer(b)?;
    // (a - z) (b - y) = a b - z sum(b) - sum(a) y + k z y, as z (sum(b) - k y).
    let [left, right] = moves;
    if let Some(zero) = &left {
        let own = match &right {
            Some(right) => {
                let k = b.shape()[b.rank() - 2].known().unwrap_or(0) as i64;
                sums()?.sub(&right.mul(k)?)?
            }
            None => sums()?,
        };
        made = made.sub(&own.mul(zero)?)?;
    }
    if let Some(zero) = &right {
        made = made.sub(&row_sums(a)?.mul(zero)?)?;
    }
    Ok(made)
}

fn row_sums(a: &Tensor) -> Result<Tensor> {
    a.cast(DType::I32)?.sum_keep(-1)
}

/// The sums of the columns of a matrix of bytes.
pub fn column_sums(b: &Tensor) -> Result<Tensor> {
    b.cast(DType::I32)?.sum_keep(-2)
}

fn is_bytes(x: &TensorType) -> bool {
    matches!(x.dtype, DType::U8 | DType::I8)
}

/// The product of two inputs of whole numbers.
fn whole_product(c: &Call, at: [usize; 2], zeros: [Option<Tensor>; 2]) -> Result<Tensor> {
    let (a, b, ty) = (c.x(at[0])?, c.x(at[1])?, c.ty(at[1])?);
    if !is_bytes(&ty) || !is_bytes(&a.ty()) {
        return Err(c.refuse(format!("a product of {} and {ty}", a.ty())));
    }
    // A vector is a row on the left, a column on the right.
    let (rows, columns) = (a.rank() == 1, b.rank() == 1);
    let a = if rows { a.expand_dims(0)? } else { a };
    let b = if columns { b.expand_dims(1)? } else { b };
    let sums = || match columns {
        true => column_sums(&b),
        false => {
            let mut shape: Vec<_> = ty.shape.iter().cloned().collect();
            shape[ty.shape.rank() - 2] = 1.into();
            let ty = TensorType { dtype: DType::I32, shape: shape.into_iter().collect() };
            c.made(&[at[1]], "sums of columns", ty, |all| column_sums(&all[0]))
        }
    };
    let mut made = centered_product(&a, &b, zeros, sums)?;
    if columns {
        made = made.squeeze(-1)?;
    }
    if rows { made.squeeze(if columns { -1 } else { -2 }) } else { Ok(made) }
}

/// A convolution of whole numbers, channels-last: the product of windows, laid out row by row, and filters.
fn whole_convolution(c: &Call, at: [usize; 2], zeros: [usize; 2]) -> Result<Tensor> {
    let (x, ty) = (c.x(at[0])?, c.ty(at[1])?);
    let (image, Some(filter)) = (c.sizes(&x)?, ty.shape.sizes()) else {
        return Err(c.refuse(format!("filters of {ty}")));
    };
    if image.len() != filter.len() || image.len() < 3 || !is_bytes(&ty) || !is_bytes(&x.ty()) {
        return Err(c.refuse(format!("an image of {} and filters of {ty}", x.ty())));
    }
    let groups = c.length(c.int("group", 1)?)?;
    let (outputs, channels) = (filter[0], filter[1]);
    let divides = groups > 0 && outputs.is_multiple_of(groups) && channels * groups == image[1];
    if !divides {
        return Err(c.refuse(format!("{groups} groups of {} and {ty}", x.shape())));
    }
    let windows = Windows::of(c, &image[2..], filter[2..].to_vec())?;
    let zero = c.maybe(zeros[0])?;
    let taps = windows.taps_of(c, &c.last(&x)?, zero.as_ref())?;
    let deep = taps.len() * channels;
    let rows: usize = image[0] * windows.counts.iter().product::<usize>();
    // [rows, groups, taps * channels] -> [groups, rows, taps * channels]
    let parts = taps.iter().map(|tap| tap.reshape([rows, groups, channels]));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let laid = concat(&parts.iter().collect::<Vec<_>>(), 2)?.transpose(&[1, 0, 2])?;
    let each = outputs / groups;
    let weights = TensorType::new(ty.dtype, [groups, deep, each]);
    // [outputs, channels, taps] -> [groups, taps * channels, outputs of a group]
    let count = taps.len();
    let by_group = move |w: &Tensor| {
        let apart = w.reshape([groups, each, channels, count])?;
        apart.transpose(&[0, 3, 2, 1])?.reshape([groups, deep, each])
    };
    let w = c.made(&[at[1]], "filters of bytes", weights, move |all| by_group(&all[0]))?;
    let sums = TensorType::new(DType::I32, [groups, 1, each]);
    let sums = || {
        c.made(&[at[1]], "sums of filters", sums.clone(), move |all| {
            column_sums(&by_group(&all[0])?)
        })
    };
    let own = match c.maybe(zeros[1])? {
        Some(zero) if zero.rank() == 1 && !zero.shape()[0].is(1) => {
            Some(zero.reshape([groups, 1, each])?)
        }
        zero => zero,
    };
    let made = centered_product(&laid, &w, [zero, own], sums)?;
    let mut shape = vec![image[0]];
    shape.extend(&windows.counts);
    shape.push(outputs);
    made.transpose(&[1, 0, 2])?.reshape(shape)
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
    // Zeros alone have no range, and any step will do.
    let scale = scale.equal(0.0)?.where_(&scale.ones_like()?, &scale)?;
    let zero = low.neg()?.div(&scale)?.round()?.clip(0.0, 255.0)?;
    let steps = x.div(&scale)?.round()?.add(&zero)?.clip(0.0, 255.0)?;
    Ok([steps, scale, zero])
}

/// The product of a tensor, in 8 bits by its own range, and bytes with a scale and a zero point for each column: in floats.
pub fn dynamic_product(x: &Tensor, by: &Tensor, scale: &Tensor, zero: &Tensor) -> Result<Tensor> {
    let [steps, own, own_zero] = in_steps(x)?;
    let zeros = [Some(own_zero), Some(zero.clone())];
    let made = centered_product(&steps.cast(DType::U8)?, by, zeros, || column_sums(by))?;
    made.cast(DType::F32)?.mul(&own.mul(scale)?)
}

fn dynamic(c: &Call) -> Result<Vec<Value>> {
    let [steps, scale, zero] = in_steps(&c.x(0)?)?;
    Ok(vec![steps.cast(DType::U8)?.into(), scale.into(), zero.cast(DType::U8)?.into()])
}
