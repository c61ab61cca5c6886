//! The gradient of `log_softmax`, from its result: `g - exp(y) * sum(g)`, row by row.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, OpDef};

use super::plain_grad::SOFTMAX_GRAD;
use super::{check, costs, rows_axes};
use crate::derive::by_formula;
use crate::infer::{inputs, same_dtype, shape};
use crate::{OpId, emit, math};

/// The op's name, for errors.
pub const NAME: &str = "log_softmax_grad";

/// `(g, y) -> g - exp(y) * sum(g)`
pub static LOG_SOFTMAX_GRAD: OpDef = OpDef {
    id: OpId::LogSoftmaxGrad as u16,
    name: NAME,
    doc: "The gradient of log_softmax, from its result.",
    infer,
    axes: |call| rows_axes(call, &[0, 1], true),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(|e, call| by_formula(e, call, formula)),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || (SOFTMAX_GRAD.samples)(),
};

fn infer(call: &Call) -> Result<Types> {
    let [g, y] = inputs(NAME, call)?;
    check(NAME, call, g)?;
    same_dtype(NAME, g, y)?;
    shape(NAME, &g.shape, &y.shape, "pass a gradient for every element")?;
    Ok(smallvec![g.clone()])
}

fn formula(e: &mut dyn Emit, _: &Attrs, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let [g, y] = &inputs[..] else { return Ok(Vec::new()) };
    let last = g.ty().shape.rank() - 1;
    let sum = emit::sum(e, g.clone(), smallvec![last], true)?;
    let share = emit::unary(e, &math::exp::EXP, y.clone())?;
    let shared = emit::mul(e, share, sum)?;
    Ok(vec![emit::sub(e, g.clone(), shared)?])
}
