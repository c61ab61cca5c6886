//! The gradients of normalizations in plain ops, for theirs.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::{Attrs, DType, Dim, Shape, Sizes};

use super::{computed, how};
use crate::{emit, math};

/// How many elements some dims have, as a number.
pub(super) fn count(e: &mut dyn Emit, dims: &[Dim], dtype: DType) -> Result<Value> {
    emit::size(e, &dims.iter().fold(Dim::Known(1), |n, dim| n.times(dim)), dtype)
}

/// `1 / sqrt(variance + epsilon)`
fn inverse(e: &mut dyn Emit, variance: Value, epsilon: f64) -> Result<Value> {
    let dtype = variance.ty().dtype;
    let epsilon = emit::number(e, epsilon, dtype)?;
    let sum = emit::add(e, variance, epsilon)?;
    let log = emit::unary(e, &math::log::LOG, sum)?;
    let half = emit::scale(e, log, -0.5)?;
    emit::unary(e, &math::exp::EXP, half)
}

fn mean(e: &mut dyn Emit, x: Value, axes: &Sizes, count: &Value) -> Result<Value> {
    let sum = emit::sum(e, x, axes.clone(), true)?;
    emit::div(e, sum, count.clone())
}

/// What all gradients have in common, of normalized numbers.
struct NormGradient {
    /// The differences from their mean, and what they are multiplied by.
    normal: Value,
    by: Value,
    g: Value,
    scale: Value,
    /// Over which means are, and over how many.
    axes: Sizes,
    count: Value,
    centered: bool,
}

impl NormGradient {
    fn of_rows(self, e: &mut dyn Emit) -> Result<Value> {
        let NormGradient { normal, by, g, scale, axes, count, centered } = self;
        let g = emit::mul(e, g, scale)?;
        let product = emit::mul(e, g.clone(), normal.clone())?;
        let for_deviation = mean(e, product, &axes, &count)?;
        let along = emit::mul(e, normal, for_deviation)?;
        let mut made = emit::sub(e, g.clone(), along)?;
        if centered {
            let for_mean = mean(e, g, &axes, &count)?;
            made = emit::sub(e, made, for_mean)?;
        }
        emit::mul(e, made, by)
    }
}

/// Sums over all axes but the last ones, under another shape.
fn columns(e: &mut dyn Emit, x: Value, over: usize, to: &Shape, dtype: DType) -> Result<Value> {
    let sum = emit::sum(e, x, (0..over).collect(), false)?;
    let sum = emit::reshape(e, sum, to)?;
    emit::cast(e, sum, dtype)
}

/// `(x, scale, g) -> (dx, dscale, dbias)`
pub(super) fn layer_norm_grad(
    e: &mut dyn Emit,
    attrs: &Attrs,
    inputs: Vec<Value>,
) -> Result<Vec<Value>> {
    let how = how("layer_norm_grad", attrs)?;
    let [x, scale, g] = &inputs[..] else { return Ok(Vec::new()) };
    let (dtype, last, to) = (x.ty().dtype, x.ty().shape.rank() - 1, scale.ty().shape.clone());
    let wide = computed(dtype);
    let [x, scale, g] = [x, scale, g].map(|x| emit::cast(e, x.clone(), wide));
    let (x, scale, g) = (x?, scale?, g?);
    let axes: Sizes = smallvec![last];
    let count = count(e, &to, wide)?;
    let x = match how.centered {
        true => {
            let mean = mean(e, x.clone(), &axes, &count)?;
            emit::sub(e, x, mean)?
        }
        false => x,
    };
    let squares = emit::mul(e, x.clone(), x.clone())?;
    let variance = mean(e, squares, &axes, &count)?;
    let by = inverse(e, variance, how.epsilon)?;
    let normal = emit::mul(e, x, by.clone())?;
    let product = emit::mul(e, g.clone(), normal.clone())?;
    let dscale = columns(e, product, last, &to, dtype)?;
    let dbias = columns(e, g.clone(), last, &to, dtype)?;
    let back = NormGradient { normal, by, g, scale, axes, count, centered: how.centered };
    let dx = back.of_rows(e)?;
    Ok(vec![emit::cast(e, dx, dtype)?, dscale, dbias])
}

/// An image as `[images, pixels, groups, channels of a group]`.
pub(super) fn grouped(shape: &Shape, groups: usize) -> Shape {
    let rank = shape.rank();
    let pixels = shape[1..rank - 1].iter().fold(Dim::Known(1), |n, dim| n.times(dim));
    let groups = Dim::Known(groups);
    let each = shape[rank - 1].divided_by(&groups);
    [shape[0].clone(), pixels, groups, each].into_iter().collect()
}

/// A number for each group of each image, beside its elements.
pub(super) fn of_groups(e: &mut dyn Emit, x: Value) -> Result<Value> {
    let one = Dim::Known(1);
    let dims = &x.ty().shape;
    let to = [dims[0].clone(), one.clone(), dims[1].clone(), one].into_iter().collect();
    emit::reshape(e, x, &to)
}

/// `(x, scale, mean, variance, g) -> (dx, dscale, dbias)`
pub(super) fn group_norm_grad(
    e: &mut dyn Emit,
    attrs: &Attrs,
    inputs: Vec<Value>,
) -> Result<Vec<Value>> {
    let how = how("group_norm_grad", attrs)?;
    let [x, scale, mean, variance, g] = &inputs[..] else { return Ok(Vec::new()) };
    let (image, of_scale) = (x.ty().clone(), scale.ty().shape.clone());
    let (dtype, wide) = (image.dtype, computed(image.dtype));
    let to = grouped(&image.shape, how.groups);
    let channels: Shape = to[2..].iter().cloned().collect();
    let transposed = |e: &mut dyn Emit, x: &Value, to: &Shape| {
        let x = emit::cast(e, x.clone(), wide)?;
        emit::reshape(e, x, to)
    };
    let (x, g) = (transposed(e, x, &to)?, transposed(e, g, &to)?);
    let scale = transposed(e, scale, &channels)?;
    let (mean, variance) = (of_groups(e, mean.clone())?, of_groups(e, variance.clone())?);
    let by = inverse(e, variance, how.epsilon)?;
    let x = emit::sub(e, x, mean)?;
    let normal = emit::mul(e, x, by.clone())?;
    let product = emit::mul(e, g.clone(), normal.clone())?;
    let dscale = columns(e, product, 2, &of_scale, dtype)?;
    let dbias = columns(e, g.clone(), 2, &of_scale, dtype)?;
    let count = count(e, &[to[1].clone(), to[3].clone()], wide)?;
    let back = NormGradient { normal, by, g, scale, axes: smallvec![1, 3], count, centered: true };
    let dx = back.of_rows(e)?;
    let dx = emit::reshape(e, dx, &image.shape)?;
    Ok(vec![emit::cast(e, dx, dtype)?, dscale, dbias])
}
