//! `layer_norm`: each row brought to a mean of 0 and a deviation of 1, or (not centered: `rms_norm`) to a mean square of
//! 1; then scaled and shifted, a number for each column.
//!
//! `(x - mean) / sqrt(variance + epsilon) * scale + bias`.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Call, Emit, OpDef, TensorType};

use super::layer_grad::LAYER_NORM_GRAD;
use super::{check, how, rows_to_test};
use crate::OpId;
use crate::infer::{along, cost, each, inputs};

/// The op's name, for errors.
pub const NAME: &str = "layer_norm";

/// `(x [..., n], scale [n], bias [n]) -> [..., n]`; the rest as [`Attrs::Normalize`](tonnage_core::Attrs::Normalize).
pub static LAYER_NORM: OpDef = OpDef {
    id: OpId::LayerNorm as u16,
    name: NAME,
    doc: "Each row brought to a mean of 0 and a deviation of 1, then scaled and shifted.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 8), made.iter().chain(call.inputs))
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
            Sample::of(&[x, last.clone(), last], attrs)
        };
        rows_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x, scale, bias] = inputs(NAME, call)?;
    how(NAME, call.attrs)?;
    check(NAME, x, &[scale, bias])?;
    Ok(smallvec![x.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let mut axes: Vec<AxisOf> = (0..rank).map(|axis| along(&[(0, axis)])).collect();
    axes[rank - 1] = AxisOf::Mixed;
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.input(0)?, call.input(1)?, call.grad()?];
    let made = e.emit(&LAYER_NORM_GRAD, inputs, call.attrs.clone(), Vec::new(), false)?;
    let wanted = |(made, needed): (_, &bool)| needed.then_some(Cotangent::Dense(made));
    Ok(made.into_iter().zip(call.needs).map(wanted).collect())
}
