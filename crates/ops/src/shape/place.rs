//! `place`: a part put into zeros: the gradient of `slice`.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use super::slice::SLICE;
use crate::{OpId, emit, rules};

/// A part put into zeros.
pub static PLACE: OpDef = OpDef {
    id: OpId::Place as u16,
    name: "place",
    doc: "A part put into zeros where a slice would take it from.",
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
    lower: Lower::Kernel,
    samples,
};

fn place<'a>(call: &Call<'a>) -> Result<(&'a [AxisSlice], &'a Shape)> {
    match call.attrs {
        Attrs::Place { slices, shape } => Ok((slices, shape)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let (slices, shape) = place(call)?;
    super::slice::check(call, slices, shape)?;
    let part: Shape = slices.iter().map(|s| s.len.clone()).collect();
    if part != call.inputs[0].shape {
        let (left, right) = (call.inputs[0].shape.clone(), part);
        let help = "the part must have the slices' lengths".into();
        return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
    }
    Ok(smallvec![TensorType { dtype: call.inputs[0].dtype, shape: shape.clone() }])
}

// An axis of which the part is all runs along; where it is not, zeros stand at some end.
fn axes(call: &Call) -> AxisMap {
    let Ok((slices, shape)) = place(call) else { return AxisMap::default() };
    let along = |(axis, (slice, whole)): (usize, (&AxisSlice, &Dim))| match *slice
        == AxisSlice::all(whole.clone())
    {
        true => AxisOf::Along(smallvec![(0, axis)]),
        false => AxisOf::Mixed,
    };
    let all = slices.iter().zip(shape.iter()).enumerate().map(along).collect();
    AxisMap { outputs: vec![all], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (slices, _) = place(&call.call())?;
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&SLICE, vec![g], Attrs::Slices(slices.to_vec()))?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, (shape, slices): (Vec<usize>, Vec<AxisSlice>)| {
        let part: Shape = slices.iter().map(|s| s.len.clone()).collect();
        let attrs = Attrs::Place { slices, shape: shape.into() };
        Sample::of(&[TensorType { dtype, shape: part }], attrs)
    };
    let mut all: Vec<Sample> = DType::ALL
        .into_iter()
        .map(|d| of(d, super::slice::sample_slices().swap_remove(0)))
        .collect();
    all.extend(super::slice::sample_slices().into_iter().map(|s| of(DType::F32, s)));
    all
}
