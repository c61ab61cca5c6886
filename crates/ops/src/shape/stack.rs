//! `stack`: tensors of one type side by side along a new axis.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, Shape, TensorType};

use super::concat::{CONCAT, joined, same_dtype};
use super::unstack::UNSTACK;
use crate::{OpId, emit, rules};

/// `(parts ..) -> whole`
pub static STACK: OpDef = OpDef {
    id: OpId::Stack as u16,
    name: "stack",
    doc: "Tensors of one type side by side along a new axis.",
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
    lower: Lower::Composite(expand),
    samples,
};

/// A shape with a length of `parts` put in at an axis.
pub(super) fn stacked(shape: &Shape, axis: usize, parts: usize) -> Shape {
    let (before, behind) = shape.split_at(axis.min(shape.rank()));
    before.iter().cloned().chain([parts.into()]).chain(behind.iter().cloned()).collect()
}

fn infer(call: &Call) -> Result<Types> {
    let rank = call.inputs.first().map_or(0, |ty| ty.shape.rank());
    let axis = joined(call, rank + 1)?;
    let dtype = same_dtype(call)?;
    let first = &call.inputs[0].shape;
    if let Some(other) = call.inputs.iter().find(|ty| ty.shape != *first) {
        let (left, right) = (first.clone(), other.shape.clone());
        let help = "all tensors must have the same shape".into();
        return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
    }
    Ok(smallvec![TensorType { dtype, shape: stacked(first, axis, call.inputs.len()) }])
}

fn axes(call: &Call) -> AxisMap {
    let Attrs::Join { axis, .. } = *call.attrs else { return AxisMap::default() };
    let rank = call.inputs.first().map_or(0, |ty| ty.shape.rank());
    let all = |i| AxisOf::Along((0..call.inputs.len()).map(|input| (input, i)).collect());
    let along = |i: usize| match i {
        _ if i == axis => AxisOf::Mixed,
        _ => all(if i < axis { i } else { i - 1 }),
    };
    AxisMap { outputs: vec![(0..=rank).map(along).collect()], summed: Vec::new() }
}

fn expand(e: &mut dyn Emit, call: &Call, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let Attrs::Join { axis, .. } = *call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let mut parts = Vec::new();
    for value in inputs {
        let shape = stacked(&value.ty().shape, axis, 1);
        parts.push(emit::reshape(e, value, &shape)?);
    }
    Ok(vec![e.apply(&CONCAT, parts, call.attrs.clone())?])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let parts = e.emit(&UNSTACK, vec![call.grad()?], call.attrs.clone(), Vec::new(), false)?;
    Ok(parts.into_iter().map(emit::dense).collect())
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], parts, axis| {
        let types = vec![TensorType::new(dtype, shape); parts];
        Sample::of(&types, Attrs::Join { axis, parts })
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 3], 2, 1)).collect();
    all.extend([
        of(DType::F32, &[], 3, 0),
        of(DType::F32, &[4], 1, 1),
        of(DType::F32, &[2, 3], 3, 0),
        of(DType::F32, &[2, 3], 2, 2),
        of(DType::F32, &[0, 3], 2, 1),
        of(DType::F32, &[1025], 2, 1),
    ]);
    all
}
