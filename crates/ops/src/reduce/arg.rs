//! Where the largest or the least element along an axis stands, as i64: `argmax`, `argmin`; the first of several.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{OpId, rules};

/// Where the largest element along an axis stands; NaN counts as the largest there is, so that it shows.
pub static ARGMAX: OpDef = OpDef {
    id: OpId::Argmax as u16,
    name: "argmax",
    doc: "Where the largest element along an axis stands, as i64; the first of several.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// Where the least element along an axis stands; NaN counts as the least there is, so that it shows.
pub static ARGMIN: OpDef = OpDef {
    id: OpId::Argmin as u16,
    name: "argmin",
    doc: "Where the least element along an axis stands, as i64; the first of several.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// The axis that is searched along.
fn axis(call: &Call) -> Result<usize> {
    match call.attrs {
        Attrs::Axis(axis) => call.inputs[0].shape.axis(call.op, rules::infer::from_front(*axis)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// One number in, indices as i64 out.
pub(super) fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let ty = &call.inputs[0];
    rules::infer::number(call, ty)?;
    let axis = axis(call)?;
    if ty.shape[axis].is(0) {
        let what = format!("axis {axis} of {ty} has no elements");
        return Err(bad_argument(call.op, what, "there has to be one to point at"));
    }
    let kept = ty.shape.iter().enumerate().filter(|(i, _)| *i != axis);
    let shape = kept.map(|(_, d)| d.clone()).collect();
    Ok(smallvec![TensorType { dtype: DType::I64, shape }])
}

/// How the axes run.
pub(super) fn axes(call: &Call) -> AxisMap {
    let Ok(axis) = axis(call) else { return AxisMap::default() };
    let kept = (0..call.inputs[0].shape.rank()).filter(|i| *i != axis);
    let outputs = vec![kept.map(|i| AxisOf::Along(smallvec![(0, i)])).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

pub(super) fn cost(call: &Call) -> Cost {
    super::cost(call, infer, 1)
}

pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Axis(axis))
    };
    let numbers = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
    let mut all: Vec<Sample> = numbers.map(|dtype| of(dtype, &[2, 7], 1)).collect();
    all.extend([
        of(DType::F32, &[1], 0),
        of(DType::F32, &[1025], 0),
        of(DType::F32, &[2, 1537], 1),
        of(DType::F32, &[9, 300], 0),
        of(DType::F32, &[2, 5, 17], 1),
        of(DType::F32, &[3, 4, 5], 0),
        of(DType::F16, &[4, 40], 0),
        of(DType::I8, &[700, 3], 0),
        of(DType::F32, &[0, 3], 1),
        of(DType::F32, &[3, 2, 0], 0),
    ]);
    all
}
