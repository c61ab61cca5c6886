//! `repeat`: each element along an axis several times in a row.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use super::stack::stacked;
use crate::{OpId, emit, infer, rules};

/// Each element along an axis several times in a row.
pub static REPEAT: OpDef = OpDef {
    id: OpId::Repeat as u16,
    name: "repeat",
    doc: "Each element along an axis several times in a row.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        Cost::local(0, rules::cost::moved(call, &outputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Composite(expand),
    samples,
};

fn asked(call: &Call) -> Result<(usize, usize)> {
    rules::infer::count(call, 1)?;
    let Attrs::Repeat { axis, count } = *call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    Ok((call.inputs[0].shape.axis(call.op, rules::infer::from_front(axis))?, count))
}

fn infer(call: &Call) -> Result<Types> {
    let (axis, count) = asked(call)?;
    let mut ty = call.inputs[0].clone();
    ty.shape[axis] = ty.shape[axis].times(&Dim::Known(count));
    Ok(smallvec![ty])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((axis, _)) = asked(call) else { return AxisMap::default() };
    let along = |i| if i == axis { AxisOf::Mixed } else { infer::along(&[(0, i)]) };
    let outputs = vec![(0..call.inputs[0].shape.rank()).map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

/// Views, and one copy at the end.
fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let (axis, count) = asked(call)?;
    let x = inputs.swap_remove(0);
    let shape: Shape = x.ty().shape.clone();
    let x = emit::reshape(e, x, &stacked(&shape, axis + 1, 1))?;
    let x = emit::broadcast_to(e, x, &stacked(&shape, axis + 1, count))?;
    Ok(vec![emit::reshape(e, x, &infer(call)?[0].shape)?])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axis, count) = asked(&call.call())?;
    let g = call.grad()?;
    let g = emit::reshape(e, g, &stacked(&call.inputs[0].shape, axis + 1, count))?;
    Ok(vec![emit::dense(emit::sum(e, g, smallvec![axis + 1], false)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis, count| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Repeat { axis, count })
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 3], 1, 2)).collect();
    all.extend([
        of(DType::F32, &[3], 0, 1),
        of(DType::F32, &[2, 3, 2], 1, 3),
        of(DType::F32, &[2, 3], 0, 0),
        of(DType::F32, &[0, 3], 0, 2),
        of(DType::F32, &[5], 0, 205),
    ]);
    all
}
