//! `group_norm`: each group of channels of each image brought to a mean of 0 and a deviation of 1; then scaled and shifted,
//! a number for each channel. With a batch read as one image and a group for each channel it is `batch_norm`.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Attrs, Call, DType, Dim, Emit, OpDef, Shape, TensorType};

use super::group_grad::GROUP_NORM_GRAD;
use super::{check, computed, formula, how};
use crate::infer::{along, cost, each, inputs, rank_at_least};
use crate::{OpId, emit};

/// The op's name, for errors.
pub const NAME: &str = "group_norm";

/// `(x [images, ..., c], scale [c], bias [c]) -> (y, means [images, groups], variances [images, groups])`; the rest as
/// [`Attrs::Normalize`].
pub static GROUP_NORM: OpDef = OpDef {
    id: OpId::GroupNorm as u16,
    name: NAME,
    doc: "Each group of channels of each image brought to a mean of 0 and a deviation of 1.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[
        Save::Input(0).always(),
        Save::Input(1).always(),
        Save::Output(1).always(),
        Save::Output(2).always(),
    ]]),
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 8), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(x, attrs): (TensorType, Attrs)| {
            let sizes = x.shape.sizes().unwrap_or_default();
            let each = TensorType::new(x.dtype, &sizes[sizes.len() - 1..]);
            Sample::of(&[x, each.clone(), each], attrs)
        };
        images_to_test().into_iter().map(sample).collect()
    },
};

/// Statistics of the groups of images of that type.
pub(super) fn of_groups(
    op: &'static str,
    x: &TensorType,
    each: &[&TensorType],
    attrs: &Attrs,
) -> Result<TensorType> {
    let how = how(op, attrs)?;
    check(op, x, each)?;
    rank_at_least(op, x, 2, "[images, ..., channels]")?;
    let channels = &x.shape[x.shape.rank() - 1];
    let even = how.groups > 0 && channels.known().is_some_and(|n| n.is_multiple_of(how.groups));
    if !even || !how.centered {
        let what = format!("{} groups of {channels} channels", how.groups);
        return Err(bad_argument(op, what, "use groups that divide the channels"));
    }
    let shape: Shape = [x.shape[0].clone(), Dim::Known(how.groups)].into_iter().collect();
    Ok(TensorType { dtype: computed(x.dtype), shape })
}

fn infer(call: &Call) -> Result<Types> {
    let [x, scale, bias] = inputs(NAME, call)?;
    let each = of_groups(NAME, x, &[scale, bias], call.attrs)?;
    Ok(smallvec![x.clone(), each.clone(), each])
}

fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let mut axes = vec![AxisOf::Mixed; rank];
    axes[0] = along(&[(0, 0)]);
    let each = vec![along(&[(0, 0)]), AxisOf::Mixed];
    AxisMap { outputs: vec![axes, each.clone(), each], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (x, mean, variance) = (call.input(0)?, call.output(1)?, call.output(2)?);
    let mut grads = vec![None; 3];
    if let Some(g) = &call.grads[0] {
        let inputs = vec![x.clone(), call.input(1)?, mean.clone(), variance, g.clone()];
        let made = e.emit(&GROUP_NORM_GRAD, inputs, call.attrs.clone(), Vec::new(), false)?;
        for (i, made) in made.into_iter().enumerate().filter(|(i, _)| call.needs[*i]) {
            grads[i] = Some(made);
        }
    }
    if call.needs[0] && (call.grads[1].is_some() || call.grads[2].is_some()) {
        let more = of_statistics(e, call, x, mean)?;
        grads[0] = Some(match grads[0].take() {
            Some(sum) => emit::add(e, sum, more)?,
            None => more,
        });
    }
    Ok(grads.into_iter().map(|grad| grad.map(Cotangent::Dense)).collect())
}

/// What an image gets from the gradients of its means and variances.
fn of_statistics(
    e: &mut dyn Emit,
    call: &GradCall,
    x: tonnage_core::Value,
    mean: tonnage_core::Value,
) -> Result<tonnage_core::Value> {
    let (how, image, wide) = (how(NAME, call.attrs)?, x.ty().clone(), mean.ty().dtype);
    let to = formula::grouped(&image.shape, how.groups);
    let count = formula::count(e, &[to[1].clone(), to[3].clone()], wide)?;
    let mut sum = emit::zeros(e, &TensorType { dtype: wide, shape: to.clone() })?;
    if let Some(g) = &call.grads[1] {
        let g = formula::of_groups(e, g.clone())?;
        sum = emit::add(e, sum, g)?;
    }
    if let Some(g) = &call.grads[2] {
        let g = formula::of_groups(e, g.clone())?;
        let g = emit::scale(e, g, 2.0)?;
        let x = emit::cast(e, x, wide)?;
        let x = emit::reshape(e, x, &to)?;
        let mean = formula::of_groups(e, mean)?;
        let x = emit::sub(e, x, mean)?;
        let g = emit::mul(e, x, g)?;
        sum = emit::add(e, sum, g)?;
    }
    let sum = emit::div(e, sum, count)?;
    let sum = emit::reshape(e, sum, &image.shape)?;
    emit::cast(e, sum, image.dtype)
}

/// Images of every kind, with their groups.
pub(super) fn images_to_test() -> Vec<(TensorType, Attrs)> {
    use DType::*;
    let of = |dtype, shape: &[usize], groups| {
        (TensorType::new(dtype, shape), super::attrs(0.01, true, groups))
    };
    vec![
        of(F64, &[2, 3, 2, 4], 2),
        of(F64, &[1, 7, 3], 3),
        of(F32, &[2, 4, 6], 1),
        of(F32, &[3, 70], 7),
        of(F16, &[2, 3, 4], 2),
        of(BF16, &[1, 9, 4], 4),
        of(F32, &[1, 700, 70], 70),
        of(F32, &[40, 5, 3], 3),
        // Several pixels at once, and some that are left over.
        of(F32, &[1, 1031, 16], 16),
        of(F64, &[2, 37, 4], 2),
        of(F32, &[0, 3, 4], 2),
    ]
}
