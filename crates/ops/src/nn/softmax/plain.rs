//! `softmax`: positive numbers that add up to 1 along the last axis.
//!
//! A row of minus infinities is NaN, as the quotient 0 / 0 is.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, TensorType};

use super::plain_grad::SOFTMAX_GRAD;
use super::{check, costs, rows_axes, rows_to_test};
use crate::OpId;
use crate::infer::inputs;

/// The op's name, for errors.
pub const NAME: &str = "softmax";

/// Positive numbers that add up to 1 along the last axis.
pub static SOFTMAX: OpDef = OpDef {
    id: OpId::Softmax as u16,
    name: NAME,
    doc: "Positive numbers that add up to 1 along the last axis: exp(x) / sum(exp(x)).",
    infer,
    axes: |call| rows_axes(call, &[0], true),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(dtype, sizes): (_, tonnage_core::Sizes)| {
            Sample::of(&[TensorType::new(dtype, &sizes[..])], Attrs::None)
        };
        rows_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs(NAME, call)?;
    check(NAME, call, x)?;
    Ok(smallvec![x.clone()])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.grad()?, call.output(0)?];
    Ok(vec![crate::emit::dense(e.apply(&SOFTMAX_GRAD, inputs, Attrs::None)?)])
}
