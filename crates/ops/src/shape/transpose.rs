//! `transpose`: the axes in another order; a view.

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

use crate::{OpId, emit, rules};

/// The axes in another order.
pub static TRANSPOSE: OpDef = OpDef {
    id: OpId::Transpose as u16,
    name: "transpose",
    doc: "The axes in another order, without a copy.",
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

fn order<'a>(call: &Call<'a>) -> Result<&'a Sizes> {
    match call.attrs {
        Attrs::Order(order) => Ok(order),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let (ty, order) = (&call.inputs[0], order(call)?);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..ty.shape.rank()) {
        let what = format!("the order {order:?} does not fit rank {}", ty.shape.rank());
        return Err(bad_argument(call.op, what, "name every axis once"));
    }
    let shape = order.iter().map(|a| ty.shape[*a].clone()).collect();
    Ok(smallvec![TensorType { dtype: ty.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let along = |axis: &usize| AxisOf::Along(smallvec![(0, *axis)]);
    let outputs = order(call).map_or(Vec::new(), |o| o.iter().map(along).collect());
    AxisMap { outputs: vec![outputs], summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    Some(layout.transpose(order(call).ok()?))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let order = order(&call.call())?;
    let mut back = order.clone();
    for (to, from) in order.iter().enumerate() {
        back[*from] = to;
    }
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&TRANSPOSE, vec![g], Attrs::Order(back))?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], order: &[usize]| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Order(order.into()))
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|dtype| of(dtype, &[2, 3], &[1, 0])).collect();
    all.extend([
        of(DType::F32, &[], &[]),
        of(DType::F32, &[0, 2], &[1, 0]),
        of(DType::F32, &[2, 3, 4], &[2, 0, 1]),
        of(DType::F32, &[33, 65], &[1, 0]),
    ]);
    all
}
