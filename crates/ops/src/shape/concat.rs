//! `concat`: tensors one after the other along an axis.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, TensorType};

use super::slice::SLICE;
use crate::{OpId, emit, rules};

/// `(parts ..) -> whole`
pub static CONCAT: OpDef = OpDef {
    id: OpId::Concat as u16,
    name: "concat",
    doc: "Tensors one after the other along an axis.",
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
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// The axis of attributes that join as many tensors as there are inputs.
pub(super) fn joined(call: &Call, rank: usize) -> Result<usize> {
    let Attrs::Join { axis, parts } = *call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    rules::infer::count(call, parts)?;
    if parts == 0 {
        return Err(bad_argument(call.op, "no tensors", "give one or more"));
    }
    match axis < rank {
        true => Ok(axis),
        false => {
            let axis = rules::infer::from_front(axis);
            Err(ErrorKind::AxisOutOfRange { op: call.op, axis, rank }.into())
        }
    }
}

/// Refuses tensors of different dtypes.
pub(super) fn same_dtype(call: &Call) -> Result<DType> {
    let first = call.inputs[0].dtype;
    match call.inputs.iter().find(|ty| ty.dtype != first) {
        Some(other) => {
            let (left, right, help) = (first, other.dtype, "cast one of them".into());
            Err(ErrorKind::DTypeMismatch { op: call.op, left, right, help }.into())
        }
        None => Ok(first),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let axis = joined(call, call.inputs.first().map_or(0, |ty| ty.shape.rank()))?;
    let dtype = same_dtype(call)?;
    let mut shape = call.inputs[0].shape.clone();
    let mut length = Dim::Known(0);
    for ty in call.inputs {
        let mut like = ty.shape.clone();
        if like.rank() == shape.rank() {
            length = length.plus(&like[axis]);
            like[axis] = shape[axis].clone();
        }
        if like != shape {
            let (left, right) = (call.inputs[0].shape.clone(), ty.shape.clone());
            let help = format!("all lengths but that of axis {axis} must be equal");
            return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
        }
    }
    shape[axis] = length;
    Ok(smallvec![TensorType { dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Attrs::Join { axis, .. } = *call.attrs else { return AxisMap::default() };
    let along = |i| match i == axis {
        true => AxisOf::Mixed,
        false => AxisOf::Along((0..call.inputs.len()).map(|input| (input, i)).collect()),
    };
    let rank = call.inputs.first().map_or(0, |ty| ty.shape.rank());
    AxisMap { outputs: vec![(0..rank).map(along).collect()], summed: Vec::new() }
}

/// Parts of the gradient, without a copy.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let axis = joined(&call.call(), call.outputs[0].shape.rank())?;
    let g = call.grad()?;
    let mut start = Dim::Known(0);
    let mut grads = Vec::new();
    for (ty, need) in call.inputs.iter().zip(call.needs) {
        grads.push(match need {
            true => {
                let mut slices: Vec<AxisSlice> =
                    ty.shape.iter().cloned().map(AxisSlice::all).collect();
                slices[axis].start = start.clone();
                emit::dense(e.apply(&SLICE, vec![g.clone()], Attrs::Slices(slices))?)
            }
            false => None,
        });
        start = start.plus(&ty.shape[axis]);
    }
    Ok(grads)
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shapes: &[&[usize]], axis| {
        let types: Vec<_> = shapes.iter().map(|s| TensorType::new(dtype, *s)).collect();
        Sample::of(&types, Attrs::Join { axis, parts: types.len() })
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|d| of(d, &[&[2, 3], &[2, 1]], 1)).collect();
    all.extend([
        of(DType::F32, &[&[3]], 0),
        of(DType::F32, &[&[3], &[0], &[2]], 0),
        of(DType::F32, &[&[2, 3], &[4, 3], &[1, 3]], 0),
        of(DType::F32, &[&[2, 1, 3], &[2, 2, 3]], 1),
        of(DType::F32, &[&[0, 2], &[0, 3]], 1),
        of(DType::F32, &[&[1025, 1], &[1025, 1]], 1),
        of(DType::F32, &[&[20_000], &[17]], 0),
        of(DType::F32, &[&[700, 1], &[700, 1], &[700, 1], &[700, 1]], 1),
        of(DType::F32, &[&[300, 5], &[300, 8], &[300, 3], &[300, 9], &[300, 2]], 1),
    ]);
    all
}
