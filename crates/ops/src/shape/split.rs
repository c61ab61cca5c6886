//! `split`: a tensor cut along an axis; views.

use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, TensorType};

use super::concat::CONCAT;
use super::slice::SLICE;
use crate::{OpId, emit, infer, rules};

/// `whole -> (parts ..)`
pub static SPLIT: OpDef = OpDef {
    id: OpId::Split as u16,
    name: "split",
    doc: "A tensor cut along an axis into pieces of given lengths, without a copy.",
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

fn cut<'a>(call: &Call<'a>) -> Result<(usize, &'a [Dim])> {
    rules::infer::count(call, 1)?;
    let Attrs::Split { axis, lengths } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let shape = &call.inputs[0].shape;
    let axis = shape.axis(call.op, rules::infer::from_front(*axis))?;
    let sum = lengths.iter().fold(Dim::Known(0), |n, len| n.plus(len));
    if lengths.is_empty() || sum != shape[axis] {
        let what =
            format!("the lengths {lengths:?} add up to {sum}, not to axis {axis} of {shape}");
        return Err(bad_argument(call.op, what, "the pieces make up the whole axis"));
    }
    Ok((axis, lengths))
}

fn infer(call: &Call) -> Result<Types> {
    let (axis, lengths) = cut(call)?;
    let piece = |len: &Dim| {
        let mut ty = call.inputs[0].clone();
        ty.shape[axis] = len.clone();
        ty
    };
    Ok(lengths.iter().map(piece).collect())
}

fn axes(call: &Call) -> AxisMap {
    let Ok((axis, lengths)) = cut(call) else { return AxisMap::default() };
    let along = |i| if i == axis { AxisOf::Mixed } else { infer::along(&[(0, i)]) };
    let axes: Vec<AxisOf> = (0..call.inputs[0].shape.rank()).map(along).collect();
    AxisMap { outputs: vec![axes; lengths.len()], summed: Vec::new() }
}

fn expand(e: &mut dyn Emit, call: &Call, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let (axis, lengths) = cut(call)?;
    let (mut start, mut made) = (Dim::Known(0), Vec::new());
    for len in lengths {
        let mut slices: Vec<AxisSlice> =
            call.inputs[0].shape.iter().cloned().map(AxisSlice::all).collect();
        slices[axis] = AxisSlice { start: start.clone(), len: len.clone(), step: 1 };
        made.push(e.apply(&SLICE, inputs.clone(), Attrs::Slices(slices))?);
        start = start.plus(len);
    }
    Ok(made)
}

/// The gradients of all outputs, those that are not there as zeros.
pub(super) fn with_zeros(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (grad, ty) in call.grads.iter().zip(call.outputs) {
        all.push(match grad {
            Some(grad) => grad.clone(),
            None => emit::zeros(e, ty)?,
        });
    }
    Ok(all)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axis, lengths) = cut(&call.call())?;
    let parts = with_zeros(e, call)?;
    let attrs = Attrs::Join { axis, parts: lengths.len() };
    Ok(vec![emit::dense(e.apply(&CONCAT, parts, attrs)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis, lengths: &[usize]| {
        let lengths = lengths.iter().map(|n| Dim::Known(*n)).collect();
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Split { axis, lengths })
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 5], 1, &[2, 3])).collect();
    all.extend([
        of(DType::F32, &[3], 0, &[3]),
        of(DType::F32, &[4, 2], 0, &[1, 0, 3]),
        of(DType::F32, &[2, 6, 2], 1, &[2, 2, 2]),
        of(DType::F32, &[0, 4], 1, &[1, 3]),
        of(DType::F32, &[1030], 0, &[1025, 5]),
    ]);
    all
}
