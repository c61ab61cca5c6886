//! `squeeze`: without axes of length 1; a view.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::layout::Layout;
use tonnage_core::row::{AxisMap, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, OpDef, Sizes, TensorType};

use super::expand_dims::EXPAND_DIMS;
use crate::{OpId, emit, infer, rules};

/// Without some axes of length 1.
pub static SQUEEZE: OpDef = OpDef {
    id: OpId::Squeeze as u16,
    name: "squeeze",
    doc: "Without some axes of length 1, without a copy.",
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

fn dropped<'a>(call: &Call<'a>) -> Result<&'a Sizes> {
    rules::infer::count(call, 1)?;
    let Attrs::Squeeze { axes, all } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let shape = &call.inputs[0].shape;
    let sorted = axes.is_sorted_by(|a, b| a < b);
    if !sorted || axes.iter().any(|axis| !shape.get(*axis).is_some_and(|d| d.is(1))) {
        let what = format!("the axes {axes:?} of the shape {shape}");
        return Err(bad_argument(call.op, what, "name axes of length 1, each once and in order"));
    }
    let late = (0..shape.rank()).find(|axis| shape[*axis].is(1) && !axes.contains(axis));
    if let Some(axis) = late.filter(|_| *all) {
        let what = format!("axis {axis}, whose length was open while tracing and is now 1");
        return Err(bad_argument(call.op, what, "name the axes to remove"));
    }
    Ok(axes)
}

fn infer(call: &Call) -> Result<Types> {
    let axes = dropped(call)?;
    let ty = &call.inputs[0];
    let kept = ty.shape.iter().enumerate().filter(|(i, _)| !axes.contains(i));
    let shape = kept.map(|(_, d)| d.clone()).collect();
    Ok(smallvec![TensorType { dtype: ty.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok(axes) = dropped(call) else { return AxisMap::default() };
    let kept = (0..call.inputs[0].shape.rank()).filter(|i| !axes.contains(i));
    let outputs = vec![kept.map(|i| infer::along(&[(0, i)])).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    let axes = dropped(call).ok()?;
    let kept = layout.sizes.iter().enumerate().filter(|(i, _)| !axes.contains(i));
    let sizes: Sizes = kept.map(|(_, n)| *n).collect();
    layout.reshape(&sizes)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let Attrs::Squeeze { axes, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(&call.call()));
    };
    Ok(vec![emit::dense(e.apply(&EXPAND_DIMS, vec![g], Attrs::Axes(axes.clone()))?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axes: &[usize]| {
        let all = shape.iter().filter(|n| **n == 1).count() == axes.len();
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Squeeze { axes: axes.into(), all })
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 1, 3], &[1])).collect();
    all.extend([
        of(DType::F32, &[1, 1], &[0, 1]),
        of(DType::F32, &[1, 2, 1], &[2]),
        of(DType::F32, &[0, 1], &[1]),
        of(DType::F32, &[2], &[]),
        of(DType::F32, &[1, 1025], &[0]),
    ]);
    all
}
