//! Padding, and crops to a size.

use tonnage::{DType, PadMode, Part, Result, Tensor, concat};

use super::Rule;
use crate::call::{Call, int_tensor, one};
use crate::layout::axis_under;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Pad" => pad,
        "CenterCropPad" => center_crop_pad,
        _ => return None,
    })
}

fn pad(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let Some(under) = c.under(&x) else { return one(padded(c, x, |axis, _| axis)?) };
    one(c.first(padded(c, under, axis_under)?)?)
}

/// With the axes that the node speaks of where the tensor has them.
fn padded(c: &Call, x: Tensor, place: fn(usize, usize) -> usize) -> Result<Tensor> {
    let widths = match c.version < 11 {
        true => match c.ints("pads")? {
            Some(pads) => pads,
            None => c.ints("paddings")?.unwrap_or_default(),
        },
        false => c.numbers(1)?,
    };
    let axes = match c.maybe_numbers(3)? {
        Some(axes) => axes.iter().map(|a| c.axis(*a, x.rank())).collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).collect(),
    };
    if widths.len() != 2 * axes.len() {
        return Err(c.refuse(format!("{} widths for {} axes", widths.len(), axes.len())));
    }
    let mut pairs = vec![[0i64; 2]; x.rank()];
    for (at, axis) in axes.iter().enumerate() {
        pairs[place(*axis, x.rank())] = [widths[at], widths[at + axes.len()]];
    }
    let mode = c.text("mode", "constant")?;
    // What is taken away is taken first.
    let cut: Vec<Part> = pairs
        .iter()
        .zip(c.sizes(&x)?)
        .map(|(pair, n)| ((-pair[0]).max(0)..(n as i64 + pair[1].min(0))).into())
        .collect();
    let x = if pairs.iter().flatten().any(|n| *n < 0) { x.slice(&cut)? } else { x };
    let widths: Vec<[usize; 2]> =
        pairs.iter().map(|pair| pair.map(|n| n.max(0) as usize)).collect();
    match mode.as_str() {
        "constant" => constant(c, x, &widths),
        "reflect" | "edge" | "wrap" => {
            let mut x = x;
            for (axis, [before, after]) in
                widths.into_iter().enumerate().filter(|(_, w)| *w != [0, 0])
            {
                let n = c.sizes(&x)?[axis] as i64;
                let places = (-(before as i64)..n + after as i64)
                    .map(|at| mirrored(at, n, &mode))
                    .collect::<Vec<_>>();
                x = x.gather(&int_tensor(&places, &[places.len()])?, axis as i64)?;
            }
            Ok(x)
        }
        other => Err(c.refuse(format!("the mode `{other}`"))),
    }
}

/// Which element stands at a place outside of an axis.
fn mirrored(at: i64, n: i64, mode: &str) -> i64 {
    match mode {
        "edge" => at.clamp(0, n - 1),
        "wrap" => at.rem_euclid(n.max(1)),
        _ => {
            let period = (2 * (n - 1)).max(1);
            let place = at.rem_euclid(period);
            if place < n { place } else { period - place }
        }
    }
}

/// With one number around; where only a call knows it, that is joined on.
fn constant(c: &Call, x: Tensor, widths: &[[usize; 2]]) -> Result<Tensor> {
    let dtype = x.dtype();
    let value = match (c.maybe_float("value")?, c.maybe(2)?) {
        (Some(value), _) if c.version < 11 => value.into(),
        (_, None) => 0.into(),
        (_, Some(value)) if !value.is_symbolic() => match dtype {
            DType::Bool => (c.floats_of(2)?.first() != Some(&0.0)).into(),
            _ if dtype.is_float() => c.floats_of(2)?.first().copied().unwrap_or(0.0).into(),
            _ => c.number(2)?.into(),
        },
        (_, Some(value)) => return around(c, x, widths, &value),
    };
    let value = match (value, dtype) {
        (tonnage::Scalar::Int(0), DType::Bool) => false.into(),
        (value, _) => value,
    };
    x.pad(widths, PadMode::Constant(value))
}

/// With one number around that only a call knows.
pub fn around(c: &Call, x: Tensor, widths: &[[usize; 2]], value: &Tensor) -> Result<Tensor> {
    let mut x = x;
    let around = widths.iter().enumerate().filter(|(_, pair)| **pair != [0, 0]);
    for (axis, [before, after]) in around {
        let part = |n: usize, x: &Tensor| -> Result<Tensor> {
            let mut sizes = c.sizes(x)?;
            sizes[axis] = n;
            value.reshape(tonnage::Shape::scalar())?.broadcast_to(sizes.as_slice())
        };
        x = concat(&[&part(*before, &x)?, &x, &part(*after, &x)?], axis as i64)?;
    }
    Ok(x)
}

fn center_crop_pad(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let to = c.numbers(1)?;
    let axes = match c.ints("axes")? {
        Some(axes) => axes.iter().map(|a| c.axis(*a, x.rank())).collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).collect(),
    };
    let sizes = c.sizes(&x)?;
    let (mut parts, mut widths) = (vec![Part::ALL; x.rank()], vec![[0; 2]; x.rank()]);
    for (axis, to) in axes.into_iter().zip(to) {
        let (from, to) = (sizes[axis], c.length(to)?);
        match to < from {
            true => {
                let start = ((from - to) / 2) as i64;
                parts[axis] = (start..start + to as i64).into();
            }
            false => widths[axis] = [(to - from) / 2, (to - from) - (to - from) / 2],
        }
    }
    one(constant(c, x.slice(&parts)?, &widths)?)
}
