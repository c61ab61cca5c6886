//! Images read at any place: grids, and what is made of them.

use tonnage::{DType, Dim, Elementwise, Result, Tensor, stack};

use super::Rule;
use crate::call::{Call, float_tensor, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "GridSample" => grid_sample,
        "AffineGrid" => affine_grid,
        _ => return None,
    })
}

/// How places outside of the image are read.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// A place along an axis of a length, mirrored into the image.
fn reflected(x: &Tensor, low: f64, high: f64) -> Result<Tensor> {
    let span = high - low;
    if span <= 0.0 {
        return x.zeros_like();
    }
    let around = x.sub(low)?.abs()?.modulo(2.0 * span)?;
    around.minimum(&(&around).neg()?.add(2.0 * span)?)?.add(low)
}

fn grid_sample(c: &Call) -> Result<Vec<Value>> {
    let (x, grid) = (c.x(0)?, c.x(1)?);
    let sizes = c.sizes(&x)?;
    let axes = sizes.len().saturating_sub(2);
    let mode = c.text("mode", "linear")?;
    let corners = c.flag("align_corners")?;
    let outside = match c.text("padding_mode", "zeros")?.as_str() {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        other => return Err(c.refuse(format!("the attribute `padding_mode` is `{other}`"))),
    };
    let offsets: &[i64] = match mode.as_str() {
        "nearest" => &[0],
        "linear" | "bilinear" => &[0, 1],
        "cubic" | "bicubic" => &[-1, 0, 1, 2],
        other => return Err(c.refuse(format!("the attribute `mode` is `{other}`"))),
    };
    let to = c.sizes(&grid)?;
    let count: usize = to[1..to.len() - 1].iter().product();
    let flat = grid.reshape([to[0], count, axes])?;
    // Along each axis: the elements that are read, how they weigh, and whether they are there.
    let mut along: Vec<Vec<(Tensor, Tensor)>> = Vec::new();
    for axis in 0..axes {
        let n = sizes[2 + axis] as f64;
        // The last number of a place is that of the last axis but the channels.
        let at = (axes - 1 - axis) as i64;
        let place = flat
            .slice(&[tonnage::Part::ALL, tonnage::Part::ALL, (at..at + 1).into()])?
            .squeeze(-1)?;
        let place = match corners {
            true => place.add(1.0)?.mul((n - 1.0) / 2.0)?,
            false => place.add(1.0)?.mul(n)?.sub(1.0)?.div(2.0)?,
        };
        let (low, high) = if corners { (0.0, n - 1.0) } else { (-0.5, n - 0.5) };
        let place = if offsets.len() == 1 { place.round()? } else { place };
        let place = match outside {
            Outside::Zeros => place,
            Outside::Border => place.clip(0.0, n - 1.0)?,
            Outside::Reflection => {
                let beyond = place.less(low)?.logical_or(&place.greater(high)?)?;
                beyond.where_(&reflected(&place, low, high)?, &place)?
            }
        };
        let before = (&place).floor()?;
        let ratio = place.sub(&before)?;
        let mut taps = Vec::new();
        for offset in offsets {
            let read = before.add(*offset as f64)?;
            let weight = weight(&ratio, *offset, offsets.len())?;
            let there = read.greater_equal(0.0)?.logical_and(&read.less_equal(n - 1.0)?)?;
            let (read, weight) = match outside {
                Outside::Zeros => {
                    (read.clip(0.0, n - 1.0)?, weight.mul(&there.cast(weight.dtype())?)?)
                }
                Outside::Border => (read.clip(0.0, n - 1.0)?, weight),
                Outside::Reflection => (
                    there
                        .where_(&read, &reflected(&read, low, high)?)?
                        .round()?
                        .clip(0.0, n - 1.0)?,
                    weight,
                ),
            };
            taps.push((read.cast(DType::I64)?, weight));
        }
        along.push(taps);
    }
    let pixels = c.last(&x)?;
    let mut sum: Option<Tensor> = None;
    for number in 0..offsets.len().pow(axes as u32) {
        let (mut rest, mut places, mut weight) = (number, Vec::new(), None::<Tensor>);
        for taps in &along {
            let (place, own) = &taps[rest % offsets.len()];
            rest /= offsets.len();
            places.push(place.clone());
            weight = Some(match weight {
                None => own.clone(),
                Some(weight) => weight.mul(own)?,
            });
        }
        let places = stack(&places.iter().collect::<Vec<_>>(), -1)?;
        let read = pixels.gather_nd_batched(&places, 1)?;
        let Some(weight) = weight else { return Err(c.refuse("an image without spatial axes")) };
        let part = read.mul(&weight.cast(x.dtype())?.expand_dims(-1)?)?;
        sum = Some(match sum {
            None => part,
            Some(sum) => sum.add(&part)?,
        });
    }
    let Some(sum) = sum else { return Err(c.refuse("no places")) };
    let mut shape = to[..to.len() - 1].to_vec();
    shape.push(sizes[1]);
    one(c.first(sum.reshape(shape)?)?)
}

/// How an element weighs that stands that far from the one before a place.
fn weight(ratio: &Tensor, offset: i64, taps: usize) -> Result<Tensor> {
    let a = -0.75;
    let distance = ratio.sub(offset as f64)?.abs()?;
    match (taps, offset) {
        (1, _) => ratio.ones_like(),
        (2, _) => distance.neg()?.add(1.0),
        (_, 0 | 1) => distance.mul(a + 2.0)?.sub(a + 3.0)?.mul(&distance)?.mul(&distance)?.add(1.0),
        _ => distance
            .mul(a)?
            .sub(5.0 * a)?
            .mul(&distance)?
            .add(8.0 * a)?
            .mul(&distance)?
            .sub(4.0 * a),
    }
}

fn affine_grid(c: &Call) -> Result<Vec<Value>> {
    let (theta, size) = (c.x(0)?, c.numbers(1)?);
    let size: Vec<usize> = size.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?;
    let (batch, spatial) = (size[0], &size[2..]);
    let axes = spatial.len();
    let corners = c.flag("align_corners")?;
    let mut places = Vec::new();
    // The last axis comes first in a place.
    for axis in (0..axes).rev() {
        let n = spatial[axis];
        let at = |i: usize| match corners {
            true if n > 1 => -1.0 + 2.0 * i as f64 / (n as f64 - 1.0),
            true => -1.0,
            false => -1.0 + (2.0 * i as f64 + 1.0) / n as f64,
        };
        let mut shape = vec![1; axes];
        shape[axis] = n;
        places.push(
            float_tensor((0..n).map(at).collect(), &shape, theta.dtype())?.broadcast_to(spatial)?,
        );
    }
    places.push(tonnage::full(1.0, theta.dtype(), spatial)?);
    let count: usize = spatial.iter().product();
    let places = stack(&places.iter().collect::<Vec<_>>(), -1)?.reshape([count, axes + 1])?;
    let made = places
        .expand_dims(0)?
        .broadcast_to([Dim::Known(batch), count.into(), (axes + 1).into()])?
        .matmul(&theta.t()?)?;
    let mut shape = vec![batch];
    shape.extend(spatial);
    shape.push(axes);
    one(made.reshape(shape)?)
}
