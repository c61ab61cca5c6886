//! `broadcast_to`: broadcast to a shape; a view with strides of 0.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::layout::Layout;
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, OpDef, Shape, TensorType};

use crate::{OpId, emit, rules};

/// Broadcast to a shape.
pub static BROADCAST_TO: OpDef = OpDef {
    id: OpId::BroadcastTo as u16,
    name: "broadcast_to",
    doc: "Broadcast to a shape, without a copy: lengths of 1 and new leading axes repeat.",
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

fn shape<'a>(call: &Call<'a>) -> Result<&'a Shape> {
    match call.attrs {
        Attrs::Shape(shape) => Ok(shape),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let (ty, to) = (&call.inputs[0], shape(call)?);
    match ty.shape.broadcast(to, call.op) {
        Ok(shape) if shape == *to => Ok(smallvec![TensorType { dtype: ty.dtype, shape }]),
        _ => {
            let (left, right) = (ty.shape.clone(), to.clone());
            let help = "counted from the last axis, lengths must be equal, or 1 on the left".into();
            Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into())
        }
    }
}

fn axes(call: &Call) -> AxisMap {
    let Ok(to) = shape(call) else { return AxisMap::default() };
    let from = &call.inputs[0].shape;
    let new = to.rank().saturating_sub(from.rank());
    let along = |axis: usize| match axis.checked_sub(new) {
        Some(own) if from[own] == to[axis] => AxisOf::Along(smallvec![(0, own)]),
        _ => AxisOf::Mixed,
    };
    AxisMap { outputs: vec![(0..to.rank()).map(along).collect()], summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    layout.broadcast_to(&shape(call).ok()?.sizes()?)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(emit::sum_to(e, g, &call.inputs[0])?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, from: &[usize], to: &[usize]| {
        Sample::of(&[TensorType::new(dtype, from)], Attrs::Shape(to.into()))
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|dtype| of(dtype, &[3], &[2, 3])).collect();
    all.extend([
        of(DType::F32, &[], &[2, 2]),
        of(DType::F32, &[1, 3], &[0, 3]),
        of(DType::F32, &[2, 1, 3], &[2, 5, 3]),
        of(DType::F32, &[1], &[1025]),
    ]);
    all
}
