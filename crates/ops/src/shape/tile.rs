//! `tile`: a tensor repeated along its axes.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, Shape, Sizes, TensorType};

use crate::{OpId, emit, infer, rules};

/// A tensor repeated along its axes.
pub static TILE: OpDef = OpDef {
    id: OpId::Tile as u16,
    name: "tile",
    doc: "A tensor repeated along its axes.",
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

fn counts<'a>(call: &Call<'a>) -> Result<&'a Sizes> {
    rules::infer::count(call, 1)?;
    let Attrs::Repeats(counts) = call.attrs else { return Err(rules::infer::wrong_attrs(call)) };
    if counts.len() != call.inputs[0].shape.rank() {
        let what = format!("{} counts for {}", counts.len(), call.inputs[0]);
        return Err(bad_argument(call.op, what, "give one for every axis"));
    }
    Ok(counts)
}

fn infer(call: &Call) -> Result<Types> {
    let counts = counts(call)?;
    let ty = &call.inputs[0];
    let shape = ty.shape.iter().zip(counts).map(|(d, n)| d.times(&Dim::Known(*n))).collect();
    Ok(smallvec![TensorType { dtype: ty.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok(counts) = counts(call) else { return AxisMap::default() };
    let along = |(i, n): (usize, &usize)| match n {
        1 => infer::along(&[(0, i)]),
        _ => AxisOf::Mixed,
    };
    AxisMap { outputs: vec![counts.iter().enumerate().map(along).collect()], summed: Vec::new() }
}

/// With a new axis before each that is repeated: `(shape with lengths of 1, shape with the counts)`.
fn interleaved(shape: &Shape, counts: &[usize]) -> (Shape, Shape) {
    let axes = || shape.iter().zip(counts);
    let with = |one: bool| {
        axes()
            .flat_map(|(d, n)| {
                let new = (*n != 1).then_some(Dim::Known(if one { 1 } else { *n }));
                new.into_iter().chain([d.clone()])
            })
            .collect()
    };
    (with(true), with(false))
}

/// Views, and one copy at the end.
fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let counts = counts(call)?;
    let x = inputs.swap_remove(0);
    let (ones, wide) = interleaved(&x.ty().shape, counts);
    let made = &infer(call)?[0].shape;
    let x = emit::reshape(e, x, &ones)?;
    let x = emit::broadcast_to(e, x, &wide)?;
    Ok(vec![emit::reshape(e, x, made)?])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let counts = counts(&call.call())?;
    let (_, wide) = interleaved(&call.inputs[0].shape, counts);
    let g = call.grad()?;
    let g = emit::reshape(e, g, &wide)?;
    let mut new = Sizes::new();
    for (i, n) in counts.iter().enumerate() {
        if *n != 1 {
            new.push(i + new.len());
        }
    }
    Ok(vec![emit::dense(emit::sum(e, g, new, false)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], counts: &[usize]| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Repeats(counts.into()))
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 3], &[2, 1])).collect();
    all.extend([
        of(DType::F32, &[], &[]),
        of(DType::F32, &[3], &[1]),
        of(DType::F32, &[2, 3, 2], &[2, 3, 1]),
        of(DType::F32, &[2, 3], &[0, 2]),
        of(DType::F32, &[0, 3], &[2, 2]),
        of(DType::F32, &[5], &[205]),
    ]);
    all
}
