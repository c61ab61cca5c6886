//! Other shapes, parts and joins.

use tonnage::{Dim, Elementwise, Part, Result, Shape, Tensor, concat};

use super::Rule;
use crate::call::{Call, int_tensor, one};
use crate::layout::{axis_under, first_order, last_order};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Shape" => |c| {
            let sizes = c.sizes(&c.x(0)?)?;
            let rank = sizes.len() as i64;
            let at = |n: i64| if n < 0 { n + rank } else { n }.clamp(0, rank) as usize;
            let (start, end) = (at(c.int("start", 0)?), at(c.int("end", rank)?));
            let part: Vec<i64> = sizes[start..end.max(start)].iter().map(|n| *n as i64).collect();
            one(int_tensor(&part, &[part.len()])?)
        },
        "Size" => |c| {
            let count: usize = c.sizes(&c.x(0)?)?.iter().product();
            one(int_tensor(&[count as i64], &[])?)
        },
        "Reshape" => reshape,
        "Flatten" => |c| {
            let x = c.x(0)?;
            let (sizes, axis) = (c.sizes(&x)?, c.int("axis", 1)?);
            let axis = if axis < 0 { axis + sizes.len() as i64 } else { axis };
            let axis = c.length(axis)?.min(sizes.len());
            one(x.reshape([
                sizes[..axis].iter().product::<usize>(),
                sizes[axis..].iter().product(),
            ])?)
        },
        "Squeeze" => |c| {
            let x = c.x(0)?;
            one(match c.axes(1)? {
                Some(axes) => x.squeeze(&axes[..])?,
                None => x.squeeze(tonnage::Axes::ALL)?,
            })
        },
        "Unsqueeze" => |c| {
            let (x, axes) = (c.x(0)?, c.axes(1)?.unwrap_or_default());
            let rank = x.rank() + axes.len();
            let mut places = axes.iter().map(|a| c.axis(*a, rank)).collect::<Result<Vec<_>>>()?;
            places.sort_unstable();
            one(places.into_iter().try_fold(x, |x, at| x.expand_dims(at as i64))?)
        },
        "Transpose" => |c| {
            let x = c.x(0)?;
            let back: Vec<i64> = (0..x.rank() as i64).rev().collect();
            let order = c.ints("perm")?.unwrap_or(back);
            match (c.under(&x), x.rank()) {
                (Some(under), rank) if order == last_order(rank) => one(under),
                (_, rank) if rank > 2 && order == first_order(rank) => one(c.first(x)?),
                _ => one(x.transpose(&order)?),
            }
        },
        "Concat" => |c| {
            let parts = c.all()?;
            let axis = c.int("axis", if c.version < 4 { 1 } else { 0 })?;
            if parts.iter().any(|part| part.rank() > 2 && c.under(part).is_some()) {
                let rank = parts[0].rank();
                let axis = axis_under(c.axis(axis, rank)?, rank);
                let parts = parts.iter().map(|part| c.last(part)).collect::<Result<Vec<_>>>()?;
                return one(c.first(concat(&parts.iter().collect::<Vec<_>>(), axis as i64)?)?);
            }
            one(concat(&parts.iter().collect::<Vec<_>>(), axis)?)
        },
        "Split" => split,
        "Slice" => slice,
        "Expand" => |c| {
            let x = c.x(0)?;
            let to: Vec<usize> =
                c.numbers(1)?.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?;
            let shape = x.shape().broadcast(&Shape::from(to.as_slice()), "Expand")?;
            one(x.broadcast_to(shape)?)
        },
        "Tile" => |c| {
            let x = c.x(0)?;
            if c.version < 6 {
                return tile_by_axis(c, &x);
            }
            let counts: Vec<usize> =
                c.numbers(1)?.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?;
            one(x.tile(&counts)?)
        },
        "DepthToSpace" => depth_to_space,
        "SpaceToDepth" => space_to_depth,
        "ReverseSequence" => reverse_sequence,
        _ => return None,
    })
}

fn tile_by_axis(c: &Call, x: &Tensor) -> Result<Vec<Value>> {
    let (count, axis) = (c.length(c.number(1)?)?, c.axis(c.number(2)?, x.rank())?);
    let mut counts = vec![1; x.rank()];
    counts[axis] = count;
    one(x.tile(&counts)?)
}

fn reshape(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let mut to = match c.ints("shape")? {
        Some(shape) => shape,
        None => c.numbers(1)?,
    };
    let from = c.sizes(&x)?;
    if !c.flag("allowzero")? {
        for (at, length) in to.iter_mut().enumerate().filter(|(_, length)| **length == 0) {
            let own =
                from.get(at).ok_or_else(|| c.refuse(format!("a length of 0 at axis {at}")))?;
            *length = *own as i64;
        }
    }
    // What is left of no elements is not known by dividing.
    if from.contains(&0) && to.contains(&-1) && !to.contains(&0) {
        to.iter_mut().filter(|n| **n == -1).for_each(|n| *n = 0);
    }
    one(x.reshape(to)?)
}

fn split(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let axis = c.axis(c.int("axis", 0)?, x.rank())?;
    let length = c.sizes(&x)?[axis];
    let given = match c.ints("split")? {
        Some(lengths) => Some(lengths),
        None => c.maybe_numbers(1)?,
    };
    let lengths: Vec<usize> = match given {
        Some(lengths) => lengths.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?,
        None => {
            let parts = c.length(c.int("num_outputs", c.node.outputs.len() as i64)?)?.max(1);
            let each = length.div_ceil(parts);
            (0..parts).map(|at| each.min(length.saturating_sub(at * each))).collect()
        }
    };
    if let Some(under) = c.under(&x) {
        let parts = under.split(&lengths, axis_under(axis, x.rank()) as i64)?;
        return parts.into_iter().map(|part| Ok(Value::Tensor(c.first(part)?))).collect();
    }
    Ok(x.split(&lengths, axis as i64)?.into_iter().map(Value::Tensor).collect())
}

fn slice(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let (starts, ends, axes, steps) = match c.version < 10 {
        true => (c.ints("starts")?, c.ints("ends")?, c.ints("axes")?, None),
        false => {
            (Some(c.numbers(1)?), Some(c.numbers(2)?), c.maybe_numbers(3)?, c.maybe_numbers(4)?)
        }
    };
    let (starts, ends) = (starts.unwrap_or_default(), ends.unwrap_or_default());
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err(c.refuse("starts, ends, axes and steps that are not equally many"));
    }
    let (rank, under) = (x.rank(), c.under(&x));
    let mut parts = vec![Part::ALL; rank];
    for (at, axis) in axes.iter().enumerate() {
        let far = |n: i64| n.clamp(-(1 << 48), 1 << 48);
        let axis = c.axis(*axis, rank)?;
        let axis = if under.is_some() { axis_under(axis, rank) } else { axis };
        parts[axis] = Part::from(far(starts[at])..far(ends[at])).by(far(steps[at]));
    }
    match under {
        Some(under) => one(c.first(under.slice(&parts)?)?),
        None => one(x.slice(&parts)?),
    }
}

fn depth_to_space(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let [n, depth, height, width] = c.sizes(&x)?[..] else {
        return Err(c.refuse("a tensor that is no image"));
    };
    let block = c.length(c.int("blocksize", 1)?)?.max(1);
    let channels = depth / (block * block);
    let moved = match c.text("mode", "DCR")?.as_str() {
        "DCR" => {
            x.reshape([n, block, block, channels, height, width])?.transpose(&[0, 3, 4, 1, 5, 2])?
        }
        "CRD" => {
            x.reshape([n, channels, block, block, height, width])?.transpose(&[0, 1, 4, 2, 5, 3])?
        }
        other => return Err(c.refuse(format!("the mode `{other}`"))),
    };
    one(moved.reshape([n, channels, height * block, width * block])?)
}

fn space_to_depth(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let [n, channels, height, width] = c.sizes(&x)?[..] else {
        return Err(c.refuse("a tensor that is no image"));
    };
    let block = c.length(c.int("blocksize", 1)?)?.max(1);
    let (rows, columns) = (height / block, width / block);
    let apart = x.reshape([n, channels, rows, block, columns, block])?;
    let moved = match c.text("mode", "DCR")?.as_str() {
        "DCR" => apart.transpose(&[0, 3, 5, 1, 2, 4])?,
        "CRD" => apart.transpose(&[0, 1, 3, 5, 2, 4])?,
        other => return Err(c.refuse(format!("the mode `{other}`"))),
    };
    one(moved.reshape([n, channels * block * block, rows, columns])?)
}

/// Each row is read backwards up to its own length.
fn reverse_sequence(c: &Call) -> Result<Vec<Value>> {
    let (x, lengths) = (c.x(0)?, c.x(1)?);
    let (batch, time) =
        (c.axis(c.int("batch_axis", 1)?, x.rank())?, c.axis(c.int("time_axis", 0)?, x.rank())?);
    let sizes = c.sizes(&x)?;
    let mut order: Vec<i64> =
        (0..x.rank() as i64).filter(|a| *a as usize != batch && *a as usize != time).collect();
    order.splice(0..0, [batch as i64, time as i64]);
    let rows = x.transpose(&order)?;
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, axis)| back[*axis as usize] = at as i64);
    let steps = tonnage::positions(Dim::Known(sizes[time]), tonnage::DType::I64)?.expand_dims(0)?;
    let lengths = lengths.cast(tonnage::DType::I64)?.expand_dims(1)?;
    let mirrored = lengths.sub(1i64)?.sub(&steps)?;
    let places = steps.less(&lengths)?.where_(&mirrored, &steps.broadcast_to(mirrored.shape())?)?;
    let read = rows.gather_nd_batched(&places.expand_dims(-1)?, 1)?;
    one(read.transpose(&back)?)
}
