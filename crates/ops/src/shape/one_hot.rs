//! `one_hot`: a new last axis with one number at the position that an index names, and another one elsewhere.
//!
//! An index that names no position gives the other number everywhere.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, Values,
};
use tonnage_core::tile::Prim;
use tonnage_core::{DType, Dim, OpDef, Scalar, Shape, TensorType};

use super::range::RANGE;
use crate::tile::{Ending, pass};
use crate::{OpId, emit, infer, rules};

/// A new last axis with a number at the position that an index names.
pub static ONE_HOT: OpDef = OpDef {
    id: OpId::OneHot as u16,
    name: "one_hot",
    doc: "A new last axis with one number at the position that an index names, and another elsewhere.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        Cost {
            bytes: rules::cost::moved(call, &outputs),
            ..rules::cost::elementwise(call, &outputs, 2)
        }
    },
    grad: Grad::Stop("indices have no slope"),
    jvp: Jvp::Stop("indices have no slope"),
    fails: Fails::Never,
    lower: Lower::Composite(expand),
    samples,
};

fn asked<'a>(call: &Call<'a>) -> Result<(&'a Dim, [Scalar; 2], DType)> {
    match call.attrs {
        Attrs::OneHot { depth, on, off, dtype } => Ok((depth, [*on, *off], *dtype)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::integer(call, &call.inputs[0])?;
    let (depth, values, dtype) = asked(call)?;
    if let Some(value) = values.iter().find(|value| !value.fits(dtype)) {
        let what = format!("{value} is no {dtype}");
        return Err(bad_argument(call.op, what, "use a number of that dtype"));
    }
    let shape = call.inputs[0].shape.iter().chain([depth]).cloned().collect();
    Ok(smallvec![TensorType { dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let along = (0..call.inputs[0].shape.rank()).map(|i| infer::along(&[(0, i)]));
    AxisMap { outputs: vec![along.chain([AxisOf::Mixed]).collect()], summed: Vec::new() }
}

fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let (depth, [on, off], dtype) = asked(call)?;
    let indices = inputs.swap_remove(0);
    let longer: Shape = indices.ty().shape.iter().cloned().chain([1.into()]).collect();
    let indices = emit::reshape(e, indices, &longer)?;
    let attrs = Attrs::Range {
        start: Scalar::Int(0),
        step: Scalar::Int(1),
        len: depth.clone(),
        dtype: DType::I64,
    };
    let positions = e.apply(&RANGE, Vec::new(), attrs)?;
    let made = pass(e, [indices, positions], Ending::Store(dtype), |p, [index, position]| {
        // A u64 that is no i64 would turn negative, which is no position either.
        let index = p.cast(index, DType::I64);
        let hit = p.two(Prim::Eq, index, position);
        let (on, off) = (p.constant(on, dtype), p.constant(off, dtype));
        p.select(hit, on, off)
    })?;
    Ok(vec![made])
}

fn samples() -> Vec<Sample> {
    let of = |index, shape: &[usize], depth: usize, dtype, on: i32, off: i32| {
        let (on, off) = (Scalar::from(on), Scalar::from(off));
        let attrs = Attrs::OneHot { depth: depth.into(), on, off, dtype };
        Sample::of(&[TensorType::new(index, shape)], attrs).with(0, Values::Below(depth + 2))
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|d| of(DType::I32, &[2, 3], 4, d, 1, 0)).collect();
    let integers = DType::ALL.into_iter().filter(|d| d.is_integer());
    all.extend(integers.map(|d| of(d, &[5], 3, DType::F32, 1, 0)));
    all.extend([
        of(DType::I64, &[], 3, DType::F32, 5, 2),
        of(DType::I64, &[0], 3, DType::F32, 1, 0),
        of(DType::I64, &[2], 0, DType::F32, 1, 0),
        of(DType::I64, &[3], 1025, DType::F32, 1, 0),
    ]);
    all
}
