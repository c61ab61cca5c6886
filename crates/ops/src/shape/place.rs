//! `place`: a part put into zeros: the gradient of `slice`.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::layout::Slice;
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
    no_scratch,
};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use super::slice::SLICE;
use super::window;
use crate::number::with_width;
use crate::{emit, rules};

/// A part put into zeros.
pub static PLACE: OpDef = OpDef {
    name: "place",
    doc: "A part put into zeros where a slice would take it from.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        Cost { flops: 0, bytes: rules::cost::moved(call, &outputs) }
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
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

fn kernel(k: &mut Kernel) -> Result<()> {
    let (input, out) = (&k.inputs[0], &mut k.outputs[0]);
    let Attrs::Place { slices, .. } = k.attrs else { return Ok(()) };
    // Of known sizes by now.
    let slice = |axis: usize| slices[axis].known().unwrap_or(Slice { start: 0, len: 0, step: 1 });
    // All zero bits are zero, or false, in every dtype.
    with_width!(input.dtype, T => {
        let (sizes, out) = out.parts::<T>();
        window::put::<T>(input, &slice, sizes, 0, out, k.workers)?;
    });
    Ok(())
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
