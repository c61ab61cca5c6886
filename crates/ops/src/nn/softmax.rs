//! `softmax`: positive numbers that add up to 1 along an axis.
//!
//! The largest element is subtracted first, so that nothing overflows. A row of minus infinities is NaN,
//! as the quotient 0 / 0 is.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, Saves, Types,
    no_scratch,
};
use tonnage_core::{DType, OpDef, Sizes, TensorType};

use crate::{emit, math, reduce, rules};

/// Positive numbers that add up to 1 along an axis.
pub static SOFTMAX: OpDef = OpDef {
    name: "softmax",
    doc: "Positive numbers that add up to 1 along an axis: exp(x) / sum(exp(x)).",
    infer,
    axes,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| Cost {
        bytes: 5 * rules::cost::bytes(&call.inputs[0]),
        ..rules::cost::elementwise(call, &call.inputs[..1], 15)
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Composite(expand),
    samples,
};

fn axis(call: &Call) -> Result<usize> {
    match call.attrs {
        Attrs::Axis(axis) => call.inputs[0].shape.axis(call.op, rules::infer::from_front(*axis)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::float(call, &call.inputs[0])?;
    axis(call)?;
    Ok(smallvec![call.inputs[0].clone()])
}

fn axes(call: &Call) -> AxisMap {
    let Ok(mixed) = axis(call) else { return AxisMap::default() };
    let along = |axis| match axis == mixed {
        true => AxisOf::Mixed,
        false => AxisOf::Along(smallvec![(0, axis)]),
    };
    let outputs = vec![(0..call.inputs[0].shape.rank()).map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let axes: Sizes = smallvec![axis(call)?];
    let x = inputs.remove(0);
    let over = Attrs::Reduce { axes: axes.clone(), keep_dims: true };
    let largest = e.apply(&reduce::max::MAX, vec![x.clone()], over)?;
    let shifted = emit::sub(e, x, largest)?;
    let powers = emit::unary(e, &math::exp::EXP, shifted)?;
    let total = emit::sum(e, powers.clone(), axes, true)?;
    Ok(vec![emit::div(e, powers, total)?])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let axes: Sizes = smallvec![axis(&call.call())?];
    let (g, y) = (call.grad()?, call.output(0)?);
    let gy = emit::mul(e, g, y.clone())?;
    let total = emit::sum(e, gy.clone(), axes, true)?;
    let shared = emit::mul(e, y, total)?;
    Ok(vec![emit::dense(emit::sub(e, gy, shared)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Axis(axis))
    };
    vec![
        of(DType::F64, &[2, 3], 1),
        of(DType::F32, &[2, 3], 1),
        of(DType::F16, &[2, 3], 1),
        of(DType::BF16, &[2, 3], 1),
        of(DType::F32, &[4, 2, 3], 1),
        of(DType::F32, &[3], 0),
        of(DType::F32, &[0, 3], 1),
        of(DType::F32, &[2, 1025], 1),
    ]
}
