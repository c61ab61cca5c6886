//! Normalization.

use tonnage::{Axes, DType, Elementwise, Result, Tensor};

use super::Rule;
use super::activation::spatial;
use super::conv::scaled;
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "BatchNormalization" => batch_norm,
        "InstanceNormalization" => |c| {
            let (x, epsilon) = (c.x(0)?, c.float("epsilon", 1e-5)?);
            if let Some(under) = c.under(&x) {
                let axes: Vec<i64> = (1..x.rank() as i64 - 1).collect();
                let (normal, ..) = normalized(&under, Axes::from(&axes[..]), epsilon)?;
                return one(c.first(normal.mul(&c.x(1)?)?.add(&c.x(2)?)?)?);
            }
            let (scale, bias) =
                (per_channel(c, &c.x(1)?, x.rank())?, per_channel(c, &c.x(2)?, x.rank())?);
            let (normal, ..) = normalized(&x, spatial(x.rank()), epsilon)?;
            one(normal.mul(&scale)?.add(&bias)?)
        },
        "LayerNormalization" => layer_norm,
        "RMSNormalization" => rms_norm,
        "GroupNormalization" => group_norm,
        "MeanVarianceNormalization" => |c| {
            let x = c.x(0)?;
            let axes = c.ints("axes")?.unwrap_or(vec![0, 2, 3]);
            let mean = x.mean_keep(&axes[..])?;
            let squares = (&x).square()?.mean_keep(&axes[..])?;
            let deviation = squares.sub(&(&mean).square()?)?.sqrt()?.add(1e-9)?;
            one(x.sub(&mean)?.div(&deviation)?)
        },
        "LpNormalization" => |c| {
            let (x, axis) = (c.x(0)?, c.int("axis", -1)?);
            let norm = match c.int("p", 2)? {
                1 => (&x).abs()?.sum_keep(axis)?,
                _ => (&x).square()?.sum_keep(axis)?.sqrt()?,
            };
            one(x.divide_no_nan(&norm)?)
        },
        "LRN" => lrn,
        _ => return None,
    })
}

/// One number a channel, broadcast over `[batch, channels, ...]`.
fn per_channel(c: &Call, x: &Tensor, rank: usize) -> Result<Tensor> {
    let mut shape = vec![1; rank.max(2) - 1];
    shape[0] = c.sizes(x)?.iter().product();
    x.reshape(shape)
}

/// With mean 0 and variance 1 over axes; and both of before.
fn normalized(x: &Tensor, axes: Axes, epsilon: f64) -> Result<(Tensor, Tensor, Tensor)> {
    let mean = x.mean_keep(axes.clone())?;
    let inverse = x.var_keep(axes)?.add(epsilon)?.rsqrt()?;
    Ok((x.sub(&mean)?.mul(&inverse)?, mean, inverse))
}

fn batch_norm(c: &Call) -> Result<Vec<Value>> {
    if c.flag("training_mode")? || (c.version < 7 && c.int("is_test", 1)? == 0) {
        return batch_norm_of_batch(c);
    }
    let epsilon = c.float("epsilon", 1e-5)?;
    let factor = move |scale: &Tensor, variance: &Tensor| {
        variance.add(epsilon)?.rsqrt()?.mul(&scale.cast(variance.dtype())?)
    };
    if let Some(convolution) = c.importer.convolutions.alone(c)? {
        let with = (1..5).map(|at| c.raw(at)).collect::<Result<Vec<_>>>()?;
        // What the convolution's own bias is moved to; `with` are scale, bias, mean and variance.
        let shift = move |with: &[Tensor], own: Option<&Tensor>| {
            let centered = match own {
                Some(own) => own.cast(with[2].dtype())?.sub(&with[2])?,
                None => (&with[2]).neg()?,
            };
            let moved = centered.mul(&factor(&with[0], &with[3])?.cast(with[2].dtype())?)?;
            (&with[1]).cast(moved.dtype())?.add(&moved)
        };
        let by = move |with: &[Tensor]| factor(&with[0], &with[3]);
        if let Some(made) = scaled(&convolution, &with, by, shift)? {
            return one(made);
        }
    }
    // One product and one sum an element: `x * factor + shift`.
    let x = c.x(0)?;
    let statistics = c.ty(4)?;
    let by = c.made(&[1, 4], "factor", statistics.clone(), move |all| factor(&all[0], &all[1]))?;
    let shift = c.made(&[1, 2, 3, 4], "shift", statistics, move |all| {
        let moved = all[2].mul(&factor(&all[0], &all[3])?.cast(all[2].dtype())?)?;
        (&all[1]).cast(moved.dtype())?.sub(&moved)
    })?;
    let (by, shift) = (by.cast(x.dtype())?, shift.cast(x.dtype())?);
    match c.under(&x) {
        Some(under) => one(c.first(under.mul(&by)?.add(&shift)?)?),
        None => {
            let wide = |t: &Tensor| per_channel(c, t, x.rank());
            one(x.mul(&wide(&by)?)?.add(&wide(&shift)?)?)
        }
    }
}

/// By the mean and variance of the batch, with those of all batches so far.
fn batch_norm_of_batch(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let rank = x.rank();
    let (old_mean, old_variance) = (c.x(3)?, c.x(4)?);
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    axes.remove(1);
    let (mean, variance) = (x.mean(&axes[..])?, x.var(&axes[..])?);
    let momentum = c.float("momentum", 0.9f32.into())?;
    let mixed = |old: &Tensor, new: &Tensor| {
        old.mul(momentum)?.add(&new.cast(old.dtype())?.mul(1.0 - momentum)?)
    };
    let (running_mean, running_variance) =
        (mixed(&old_mean, &mean)?, mixed(&old_variance, &variance)?);
    let wide = |t: &Tensor| per_channel(c, &t.cast(x.dtype())?, rank);
    let factor =
        variance.add(c.float("epsilon", 1e-5)?)?.rsqrt()?.mul(&c.x(1)?.cast(variance.dtype())?)?;
    let made = x.sub(&wide(&mean)?)?.mul(&wide(&factor)?)?.add(&wide(&c.x(2)?)?)?;
    Ok([made, running_mean, running_variance].into_iter().map(Value::Tensor).collect())
}

/// The dtype that statistics are computed in.
fn stash(c: &Call, x: &Tensor) -> Result<DType> {
    let named = c.dtype(c.int("stash_type", 1)?)?;
    Ok(if x.dtype().size() > named.size() { x.dtype() } else { named })
}

fn layer_norm(c: &Call) -> Result<Vec<Value>> {
    let (x, scale) = (c.x(0)?, c.x(1)?);
    let axis = c.axis(c.int("axis", -1)?, x.rank())?;
    let epsilon = c.float("epsilon", 1e-5)?;
    let bias = c.maybe(2)?;
    if let (Some(bias), 1, true) =
        (&bias, scale.rank(), axis + 1 == x.rank() && c.node.outputs.len() == 1)
    {
        return one(x.layer_norm(&scale, bias, epsilon)?);
    }
    let axes: Vec<i64> = (axis as i64..x.rank() as i64).collect();
    let (normal, mean, inverse) =
        normalized(&(&x).cast(stash(c, &x)?)?, Axes::from(&axes[..]), epsilon)?;
    let made = normal.cast(x.dtype())?.mul(&scale)?;
    let made = match bias {
        Some(bias) => made.add(&bias)?,
        None => made,
    };
    Ok(vec![made.into(), mean.into(), inverse.into()])
}

fn rms_norm(c: &Call) -> Result<Vec<Value>> {
    let (x, scale) = (c.x(0)?, c.x(1)?);
    let axis = c.axis(c.int("axis", -1)?, x.rank())?;
    let axes: Vec<i64> = (axis as i64..x.rank() as i64).collect();
    let wide = (&x).cast(stash(c, &x)?)?;
    let mean = (&wide).square()?.mean_keep(&axes[..])?;
    let normal = wide.mul(&mean.add(c.float("epsilon", 1e-5)?)?.rsqrt()?)?;
    one(normal.cast(scale.dtype())?.mul(&scale)?)
}

fn group_norm(c: &Call) -> Result<Vec<Value>> {
    let (x, scale, bias) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let sizes = c.sizes(&x)?;
    let groups = c.length(c.int("num_groups", 1)?)?;
    if groups == 0 || sizes.len() < 2 || !sizes[1].is_multiple_of(groups) {
        return Err(c.refuse(format!("{groups} groups of {}", x.shape())));
    }
    let rest: usize = sizes[2..].iter().product();
    let grouped =
        (&x).cast(stash(c, &x)?)?.reshape([sizes[0], groups, sizes[1] / groups * rest])?;
    let (normal, ..) = normalized(&grouped, Axes::from(2), c.float("epsilon", 1e-5)?)?;
    let normal = normal.cast(x.dtype())?;
    // Before opset 21 there was a number for each group, since then one for each channel.
    if c.sizes(&scale)?.iter().product::<usize>() == groups && c.version < 21 {
        let wide = normal.mul(&scale.reshape([groups, 1])?)?.add(&bias.reshape([groups, 1])?)?;
        return one(wide.reshape(sizes)?);
    }
    let normal = normal.reshape(&sizes)?;
    one(normal.mul(&per_channel(c, &scale, sizes.len())?)?.add(&per_channel(
        c,
        &bias,
        sizes.len(),
    )?)?)
}

/// Each element by the squares of its neighbours among the channels.
fn lrn(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let size = c.length(c.int("size", 1)?)?.max(1);
    let (alpha, beta) = (c.float("alpha", 1e-4f32.into())?, c.float("beta", 0.75)?);
    let channels = c.sizes(&x)?[1] as i64;
    let mut widths = vec![[0, 0]; x.rank()];
    widths[1] = [(size - 1) / 2, size - 1 - (size - 1) / 2];
    let padded = (&x).square()?.pad(&widths, tonnage::PadMode::Constant(0.0.into()))?;
    let part = |at: i64| padded.slice(&[tonnage::Part::ALL, (at..at + channels).into()]);
    let mut sum = part(0)?;
    for at in 1..size as i64 {
        sum = sum.add(&part(at)?)?;
    }
    let by = sum.mul(alpha / size as f64)?.add(c.float("bias", 1.0)?)?.pow(beta)?;
    one(x.div(&by)?)
}
