//! `expand_dims`: new axes of length 1; a view.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::layout::Layout;
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, Sizes, TensorType};

use crate::{OpId, emit, infer, rules};

/// New axes of length 1, where they stand in the result.
pub static EXPAND_DIMS: OpDef = OpDef {
    id: OpId::ExpandDims as u16,
    name: "expand_dims",
    doc: "New axes of length 1, without a copy.",
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

/// The new axes, counted in the result.
fn new_axes<'a>(call: &Call<'a>) -> Result<(&'a Sizes, usize)> {
    rules::infer::count(call, 1)?;
    let Attrs::Axes(axes) = call.attrs else { return Err(rules::infer::wrong_attrs(call)) };
    let rank = call.inputs[0].shape.rank() + axes.len();
    if !axes.is_sorted_by(|a, b| a < b) || axes.last().is_some_and(|axis| *axis >= rank) {
        let what = format!("the new axes {axes:?} of a result of rank {rank}");
        return Err(bad_argument(call.op, what, "name each once, in order, below the rank"));
    }
    Ok((axes, rank))
}

fn infer(call: &Call) -> Result<Types> {
    let (axes, rank) = new_axes(call)?;
    let ty = &call.inputs[0];
    let mut old = ty.shape.iter().cloned();
    let dim = |i: usize| match axes.contains(&i) {
        true => 1.into(),
        false => old.next().unwrap_or_else(|| 1.into()),
    };
    Ok(smallvec![TensorType { dtype: ty.dtype, shape: (0..rank).map(dim).collect() }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((axes, rank)) = new_axes(call) else { return AxisMap::default() };
    let mut old = 0..;
    let along = |i: usize| match axes.contains(&i) {
        true => AxisOf::Mixed,
        false => infer::along(&[(0, old.next().unwrap_or(0))]),
    };
    AxisMap { outputs: vec![(0..rank).map(along).collect()], summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    layout.reshape(&with_ones(new_axes(call).ok()?, layout))
}

fn with_ones((axes, rank): (&Sizes, usize), layout: &Layout) -> Sizes {
    let mut old = layout.sizes.iter().copied();
    (0..rank).map(|i| if axes.contains(&i) { 1 } else { old.next().unwrap_or(1) }).collect()
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let Attrs::Axes(axes) = call.attrs else {
        return Err(rules::infer::wrong_attrs(&call.call()));
    };
    let attrs = Attrs::Squeeze { axes: axes.clone(), all: false };
    Ok(vec![emit::dense(e.apply(&super::squeeze::SQUEEZE, vec![g], attrs)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axes: &[usize]| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Axes(axes.into()))
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 3], &[1])).collect();
    all.extend([
        of(DType::F32, &[], &[0, 1]),
        of(DType::F32, &[2, 3], &[0, 3]),
        of(DType::F32, &[0, 3], &[2]),
        of(DType::F32, &[2], &[]),
        of(DType::F32, &[1025], &[1]),
    ]);
    all
}
