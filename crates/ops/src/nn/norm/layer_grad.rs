//! The gradient of `layer_norm` for all of its inputs. A row's statistics are recomputed: the row is read anyway.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Call, Emit, OpDef, TensorType};

use super::{check, formula, how, rows_to_test};
use crate::OpId;
use crate::derive::by_formula;
use crate::infer::{along, cost, each, inputs, same_dtype, shape};

/// The op's name, for errors.
pub const NAME: &str = "layer_norm_grad";

/// `(x, scale, g) -> (dx, dscale, dbias)`; the rest as [`Attrs::Normalize`](tonnage_core::Attrs::Normalize).
pub static LAYER_NORM_GRAD: OpDef = OpDef {
    id: OpId::LayerNormGrad as u16,
    name: NAME,
    doc: "Gradients of layer_norm for its rows, scale and bias.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 16), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(x, attrs): (TensorType, _)| {
            let last = TensorType::new(
                x.dtype,
                &x.shape.sizes().unwrap_or_default()[x.shape.rank() - 1..],
            );
            Sample::of(&[x.clone(), last, x], attrs)
        };
        rows_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x, scale, g] = inputs(NAME, call)?;
    how(NAME, call.attrs)?;
    check(NAME, x, &[scale])?;
    same_dtype(NAME, x, g)?;
    shape(NAME, &g.shape, &x.shape, "pass a gradient for every element")?;
    Ok(smallvec![x.clone(), scale.clone(), scale.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let mut axes: Vec<AxisOf> = (0..rank).map(|axis| along(&[(0, axis), (2, axis)])).collect();
    axes[rank - 1] = AxisOf::Mixed;
    AxisMap { outputs: vec![axes, vec![AxisOf::Mixed], vec![AxisOf::Mixed]], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    by_formula(e, call, formula::layer_norm_grad)
}
