//! `reshape`: the same elements in the same order under another shape; a view where the order allows,
//! a copy of a strided tensor otherwise.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::layout::Layout;
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use crate::{OpId, emit, rules};

/// The same elements in the same order under another shape.
pub static RESHAPE: OpDef = OpDef {
    id: OpId::Reshape as u16,
    name: "reshape",
    doc: "The same elements in the same order under another shape, without a copy where they lie in that order.",
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

// Sizes that are open are compared where they are known: a graph is inferred again for the sizes of a call.
fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let (ty, to) = (&call.inputs[0], shape(call)?);
    if !ty.shape.elements().may_equal(&to.elements()) {
        let (from, to) = (ty.shape.clone(), to.clone());
        return Err(ErrorKind::ElementCount { op: call.op, from, to }.into());
    }
    Ok(smallvec![TensorType { dtype: ty.dtype, shape: to.clone() }])
}

// Leading axes that both shapes share run along, as far as what is left of both has as many elements
// (which it need not where a length is 0); the rest is mixed.
fn axes(call: &Call) -> AxisMap {
    let Ok(to) = shape(call) else { return AxisMap::default() };
    let from = &call.inputs[0].shape;
    let rest =
        |shape: &Shape, from: usize| shape[from..].iter().fold(Dim::Known(1), |n, d| n.times(d));
    let shared = to.iter().zip(from.iter()).take_while(|(a, b)| a == b).count();
    let shared = (0..=shared).rev().find(|n| rest(from, *n) == rest(to, *n)).unwrap_or(0);
    let along = |axis| match axis < shared {
        true => AxisOf::Along(smallvec![(0, axis)]),
        false => AxisOf::Mixed,
    };
    AxisMap { outputs: vec![(0..to.rank()).map(along).collect()], summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    layout.reshape(&shape(call).ok()?.sizes()?)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(emit::reshape(e, g, &call.inputs[0].shape)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, from: &[usize], to: &[usize]| {
        Sample::of(&[TensorType::new(dtype, from)], Attrs::Shape(to.into()))
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|dtype| of(dtype, &[2, 3], &[3, 2])).collect();
    all.extend([
        of(DType::F32, &[], &[1, 1]),
        of(DType::F32, &[1], &[]),
        of(DType::F32, &[0, 3], &[0]),
        of(DType::F32, &[2, 3, 4], &[2, 12]),
        of(DType::F32, &[6, 4], &[2, 3, 2, 2]),
        of(DType::F32, &[41, 25], &[1025]),
    ]);
    all
}
