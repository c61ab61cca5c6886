//! `slice`: a part of every axis, with steps of either sign; a view.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::layout::{Layout, Slice};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, Shape, TensorType};

use super::place::PLACE;
use crate::{OpId, emit, rules};

/// A part of every axis.
pub static SLICE: OpDef = OpDef {
    id: OpId::Slice as u16,
    name: "slice",
    doc: "A part of every axis, with steps of either sign, without a copy.",
    infer,
    axes,
    mem: Mem::View(0),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: rules::cost::free,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::View(view),
    samples,
};

fn slices<'a>(call: &Call<'a>) -> Result<&'a [AxisSlice]> {
    match call.attrs {
        Attrs::Slices(slices) => Ok(slices),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Refuses slices that reach outside of a shape, as far as that is known.
pub(super) fn check(call: &Call, slices: &[AxisSlice], shape: &Shape) -> Result<()> {
    if slices.len() != shape.rank() {
        let what = format!("{} slices for the shape {shape}", slices.len());
        return Err(bad_argument(call.op, what, "give one for every axis"));
    }
    for (axis, (slice, dim)) in slices.iter().zip(shape.iter()).enumerate() {
        if slice.step == 0 {
            return Err(bad_argument(call.op, "a step of 0", "use 1, -1 or more"));
        }
        let (Some(s), Some(size)) = (slice.known(), dim.known()) else { continue };
        let last = s.start as i128 + (s.len as i128 - 1) * s.step as i128;
        let inside = |at: i128| at >= 0 && at < size as i128;
        if s.len > 0 && !(inside(s.start as i128) && inside(last)) {
            let what = format!(
                "{} elements from {} by {} leave axis {axis} of {shape}",
                s.len, s.start, s.step
            );
            return Err(bad_argument(call.op, what, "stay inside of the axis"));
        }
    }
    Ok(())
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let (ty, slices) = (&call.inputs[0], slices(call)?);
    check(call, slices, &ty.shape)?;
    let shape = slices.iter().map(|s| s.len.clone()).collect();
    Ok(smallvec![TensorType { dtype: ty.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok(slices) = slices(call) else { return AxisMap::default() };
    let along = |(axis, slice): (usize, &AxisSlice)| {
        let whole = slice.step == 1 && slice.len == call.inputs[0].shape[axis];
        if whole { AxisOf::Along(smallvec![(0, axis)]) } else { AxisOf::Mixed }
    };
    let outputs = vec![slices.iter().enumerate().map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    let slices: Option<Vec<Slice>> = slices(call).ok()?.iter().map(AxisSlice::known).collect();
    Some(layout.slice(&slices?))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let slices = slices(&call.call())?.to_vec();
    let attrs = Attrs::Place { slices, shape: call.inputs[0].shape.clone() };
    Ok(vec![emit::dense(e.apply(&PLACE, vec![g], attrs)?)])
}

/// Shapes and slices of them.
pub(super) fn sample_slices() -> Vec<(Vec<usize>, Vec<AxisSlice>)> {
    let s = |start: usize, len: usize, step: isize| AxisSlice {
        start: start.into(),
        len: len.into(),
        step,
    };
    vec![
        (vec![2, 3], vec![s(0, 2, 1), s(1, 2, 1)]),
        (vec![5, 4], vec![s(4, 3, -2), s(3, 4, -1)]),
        (vec![], vec![]),
        (vec![4], vec![s(2, 0, 1)]),
        (vec![0, 3], vec![s(0, 0, 1), s(0, 3, 1)]),
        (vec![2100], vec![s(1, 1025, 2)]),
        (vec![3, 4, 5], vec![s(0, 3, 1), s(1, 2, 2), s(4, 5, -1)]),
    ]
}

fn samples() -> Vec<Sample> {
    let of = |dtype, (shape, slices): (Vec<usize>, Vec<AxisSlice>)| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Slices(slices))
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|d| of(d, sample_slices().swap_remove(0))).collect();
    all.extend(sample_slices().into_iter().map(|s| of(DType::F32, s)));
    all
}
