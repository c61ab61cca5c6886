//! The gradient of `group_norm` for all of its inputs.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Attrs, Call, OpDef, TensorType};

use super::group::{images_to_test, of_groups};
use super::{computed, formula, how};
use crate::OpId;
use crate::derive::by_formula;
use crate::infer::{along, cost, each, inputs, same_dtype, shape};

/// The op's name, for errors.
pub const NAME: &str = "group_norm_grad";

/// `(x, scale, means, variances, g) -> (dx, dscale, dbias)`; the rest as [`Attrs::Normalize`].
pub static GROUP_NORM_GRAD: OpDef = OpDef {
    id: OpId::GroupNormGrad as u16,
    name: NAME,
    doc: "Gradients of group_norm for its images, scale and bias.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 12), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(|e, call| by_formula(e, call, formula::group_norm_grad)),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(x, attrs): (TensorType, Attrs)| {
            let sizes = x.shape.sizes().unwrap_or_default();
            let scale = TensorType::new(x.dtype, &sizes[sizes.len() - 1..]);
            let groups = how(NAME, &attrs).map_or(1, |how| how.groups);
            let each = TensorType::new(computed(x.dtype), [sizes[0], groups]);
            Sample::of(&[x.clone(), scale, each.clone(), each, x], attrs)
                .with(3, Values::Between(0.5, 2.0))
        };
        images_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x, scale, means, variances, g] = inputs(NAME, call)?;
    let each = of_groups(NAME, x, &[scale], call.attrs)?;
    for ty in [means, variances] {
        same_dtype(NAME, ty, &each)?;
        shape(NAME, &ty.shape, &each.shape, "pass a number for each group of each image")?;
    }
    same_dtype(NAME, x, g)?;
    shape(NAME, &g.shape, &x.shape, "pass a gradient for every element")?;
    Ok(smallvec![x.clone(), scale.clone(), scale.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let mut axes = vec![AxisOf::Mixed; call.inputs[0].shape.rank()];
    axes[0] = along(&[(0, 0), (2, 0), (3, 0), (4, 0)]);
    AxisMap { outputs: vec![axes, vec![AxisOf::Mixed], vec![AxisOf::Mixed]], summed: Vec::new() }
}
