//! `reverse`: backwards along some axes; a view.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::layout::{Layout, Slice};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, Sizes, TensorType};

use crate::{OpId, emit, infer, rules};

/// Backwards along some axes.
pub static REVERSE: OpDef = OpDef {
    id: OpId::Reverse as u16,
    name: "reverse",
    doc: "Backwards along some axes, without a copy.",
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

fn reversed_axes<'a>(call: &Call<'a>) -> Result<&'a Sizes> {
    rules::infer::count(call, 1)?;
    let Attrs::Axes(axes) = call.attrs else { return Err(rules::infer::wrong_attrs(call)) };
    let rank = call.inputs[0].shape.rank();
    if !axes.is_sorted_by(|a, b| a < b) || axes.last().is_some_and(|axis| *axis >= rank) {
        let what = format!("the axes {axes:?} of a tensor of rank {rank}");
        return Err(bad_argument(call.op, what, "name each once, in order, below the rank"));
    }
    Ok(axes)
}

fn infer(call: &Call) -> Result<Types> {
    reversed_axes(call)?;
    Ok(call.inputs.iter().cloned().collect())
}

fn axes(call: &Call) -> AxisMap {
    let Ok(axes) = reversed_axes(call) else { return AxisMap::default() };
    let along = |i| match axes.contains(&i) {
        true => AxisOf::Mixed,
        false => infer::along(&[(0, i)]),
    };
    let outputs = vec![(0..call.inputs[0].shape.rank()).map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    let axes = reversed_axes(call).ok()?;
    let slice = |(i, len): (usize, &usize)| match axes.contains(&i) {
        true => Slice { start: len.saturating_sub(1), len: *len, step: -1 },
        false => Slice { start: 0, len: *len, step: 1 },
    };
    let slices: Vec<Slice> = layout.sizes.iter().enumerate().map(slice).collect();
    Some(layout.slice(&slices))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&REVERSE, vec![g], call.attrs.clone())?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axes: &[usize]| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Axes(axes.into()))
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 3], &[1])).collect();
    all.extend([
        of(DType::F32, &[], &[]),
        of(DType::F32, &[2, 3, 4], &[0, 2]),
        of(DType::F32, &[0, 3], &[0, 1]),
        of(DType::F32, &[1025], &[0]),
    ]);
    all
}
