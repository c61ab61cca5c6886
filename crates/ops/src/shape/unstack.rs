//! `unstack`: the parts of a tensor along an axis, which they lose; views.

use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, Shape, TensorType};

use super::slice::SLICE;
use super::split::with_zeros;
use super::stack::{STACK, stacked};
use crate::{OpId, emit, infer, rules};

/// `whole -> (parts ..)`
pub static UNSTACK: OpDef = OpDef {
    id: OpId::Unstack as u16,
    name: "unstack",
    doc: "The parts of a tensor along an axis, which they lose, without a copy.",
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

fn joined(call: &Call) -> Result<(usize, usize)> {
    rules::infer::count(call, 1)?;
    let Attrs::Join { axis, parts } = *call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let shape = &call.inputs[0].shape;
    let axis = shape.axis(call.op, rules::infer::from_front(axis))?;
    if shape[axis].known().is_some_and(|n| n != parts) {
        let what = format!("{parts} parts of axis {axis} of {shape}");
        return Err(bad_argument(call.op, what, "there are as many as the axis is long"));
    }
    Ok((axis, parts))
}

fn without(shape: &Shape, axis: usize) -> Shape {
    shape.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| d.clone()).collect()
}

fn infer(call: &Call) -> Result<Types> {
    let (axis, parts) = joined(call)?;
    let ty = &call.inputs[0];
    let part = TensorType { dtype: ty.dtype, shape: without(&ty.shape, axis) };
    Ok((0..parts).map(|_| part.clone()).collect())
}

fn axes(call: &Call) -> AxisMap {
    let Ok((axis, parts)) = joined(call) else { return AxisMap::default() };
    let kept = (0..call.inputs[0].shape.rank()).filter(|i| *i != axis);
    let axes: Vec<AxisOf> = kept.map(|i| infer::along(&[(0, i)])).collect();
    AxisMap { outputs: vec![axes; parts], summed: Vec::new() }
}

fn expand(e: &mut dyn Emit, call: &Call, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let (axis, parts) = joined(call)?;
    let shape = without(&call.inputs[0].shape, axis);
    let mut made = Vec::new();
    for i in 0..parts {
        let mut slices: Vec<AxisSlice> =
            call.inputs[0].shape.iter().cloned().map(AxisSlice::all).collect();
        slices[axis] = AxisSlice { start: i.into(), len: 1.into(), step: 1 };
        let part = e.apply(&SLICE, inputs.clone(), Attrs::Slices(slices))?;
        made.push(emit::reshape(e, part, &shape)?);
    }
    Ok(made)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axis, _) = joined(&call.call())?;
    let whole = &call.inputs[0].shape;
    if let [Some(only)] = call.grads {
        let only = emit::reshape(e, only.clone(), &stacked(&only.ty().shape, axis, 1))?;
        return Ok(vec![emit::dense(emit::reshape(e, only, whole)?)]);
    }
    let grads = with_zeros(e, call)?;
    Ok(vec![emit::dense(e.apply(&STACK, grads, call.attrs.clone())?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis| {
        let attrs = Attrs::Join { axis, parts: shape[axis] };
        Sample::of(&[TensorType::new(dtype, shape)], attrs)
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 3], 1)).collect();
    all.extend([
        of(DType::F32, &[3], 0),
        of(DType::F32, &[1, 4], 0),
        of(DType::F32, &[2, 3, 2], 1),
        of(DType::F32, &[2, 0], 0),
        of(DType::F32, &[2, 1025], 0),
    ]);
    all
}
