//! `log_softmax`: the logarithm of softmax along the last axis, exact also where that is too small to be a number:
//! `(x - largest) - log(sum(exp(x - largest)))`.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef};

use super::log_grad::LOG_SOFTMAX_GRAD;
use super::plain::SOFTMAX;
use super::{check, costs, rows_axes};
use crate::OpId;
use crate::infer::inputs;

/// The op's name, for errors.
pub const NAME: &str = "log_softmax";

/// The logarithm of softmax along the last axis.
pub static LOG_SOFTMAX: OpDef = OpDef {
    id: OpId::LogSoftmax as u16,
    name: NAME,
    doc: "The logarithm of softmax along the last axis: x - log(sum(exp(x))).",
    infer,
    axes: |call| rows_axes(call, &[0], true),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || (SOFTMAX.samples)(),
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs(NAME, call)?;
    check(NAME, call, x)?;
    Ok(smallvec![x.clone()])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.grad()?, call.output(0)?];
    Ok(vec![crate::emit::dense(e.apply(&LOG_SOFTMAX_GRAD, inputs, Attrs::None)?)])
}
