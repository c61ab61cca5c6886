//! `roll`: moved along an axis, with what falls off one end coming in at the other.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{OpId, emit, infer, rules};

/// Moved along an axis, around its ends.
pub static ROLL: OpDef = OpDef {
    id: OpId::Roll as u16,
    name: "roll",
    doc: "Moved along an axis, with what falls off one end coming in at the other.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| Cost::local(0, rules::cost::moved(call, &call.inputs[..1])),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn asked(call: &Call) -> Result<(usize, i64)> {
    rules::infer::count(call, 1)?;
    let Attrs::Roll { axis, shift } = *call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let axis = call.inputs[0].shape.axis(call.op, rules::infer::from_front(axis))?;
    Ok((axis, shift))
}

fn infer(call: &Call) -> Result<Types> {
    asked(call)?;
    Ok(call.inputs.iter().cloned().collect())
}

fn axes(call: &Call) -> AxisMap {
    let Ok((axis, _)) = asked(call) else { return AxisMap::default() };
    let along = |i| if i == axis { AxisOf::Mixed } else { infer::along(&[(0, i)]) };
    let outputs = vec![(0..call.inputs[0].shape.rank()).map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axis, shift) = asked(&call.call())?;
    let back = Attrs::Roll { axis, shift: shift.saturating_neg() };
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&ROLL, vec![g], back)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis, shift| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Roll { axis, shift })
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 5], 1, 2)).collect();
    all.extend([
        of(DType::F32, &[3], 0, 0),
        of(DType::F32, &[3], 0, -7),
        of(DType::F32, &[4, 2, 3], 0, 1),
        of(DType::F32, &[2, 4, 3], 1, -1),
        of(DType::F32, &[0, 3], 0, 1),
        of(DType::F32, &[3, 0], 0, 1),
        of(DType::F32, &[20_000], 0, 5),
    ]);
    all
}
