//! `mask_scatter`: zeros, with rows put where a mask is true, in order. The transpose of `boolean_mask`,
//! and its gradient.

use smallvec::smallvec;
use tonnage_core::error::{Error, Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, TensorType};

use super::boolean_mask::BOOLEAN_MASK;
use crate::OpId;
use crate::infer::mask_type;
use crate::infer::{along, cost, inputs, joined, no_attrs, number, rank_at_least};

/// `(mask, rows) -> zeros with rows`
pub static MASK_SCATTER: OpDef = OpDef {
    id: OpId::MaskScatter as u16,
    name: "mask_scatter",
    doc: "Zeros with rows put, in order, where a mask is true.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[1]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

/// The error of a mask that selects other than the rows that are given.
pub fn wrong_rows(selected: usize, given: usize) -> Error {
    let what = format!("the mask selects {selected} rows, but {given} are given");
    bad_argument("mask_scatter", what, "give one row for each true element")
}

fn infer(call: &Call) -> Result<Types> {
    let [mask, rows] = inputs("mask_scatter", call)?;
    no_attrs("mask_scatter", call)?;
    mask_type("mask_scatter", mask)?;
    number("mask_scatter", rows)?;
    rank_at_least("mask_scatter", rows, 1, "one row for each element that is true")?;
    Ok(smallvec![TensorType::new(rows.dtype, joined(&[&mask.shape, &rows.shape[1..]]))])
}

fn axes(call: &Call) -> AxisMap {
    let (masked, rank) = (call.inputs[0].shape.rank(), call.inputs[1].shape.rank());
    let rows = (1..rank).map(|a| along(&[(1, a)]));
    let axes = (0..masked).map(|_| AxisOf::Mixed).chain(rows).collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let shape = Attrs::Shape(call.inputs[1].shape.clone());
    let rows = emit.apply(&BOOLEAN_MASK, vec![call.grad()?, call.input(0)?], shape)?;
    Ok(vec![None, Some(Cotangent::Dense(rows))])
}

/// Masks that are all true or all false: how many rows there are is then known to the types.
fn samples() -> Vec<Sample> {
    let of = |dtype, mask: &[usize], row: &[usize], all: bool| {
        let count = if all { mask.iter().product() } else { 0 };
        let rows = TensorType::new(dtype, [&[count], row].concat());
        let bits = if all { 1.0 } else { 0.0 };
        Sample::of(&[TensorType::new(DType::Bool, mask), rows], Attrs::None)
            .with(0, Values::Between(bits, bits))
    };
    vec![
        of(DType::F64, &[5], &[3], true),
        of(DType::F64, &[2, 3], &[], true),
        of(DType::F64, &[5], &[3], false),
        of(DType::F32, &[1025], &[20], true),
        of(DType::F32, &[1023], &[], false),
        of(DType::F16, &[4], &[2], true),
        of(DType::BF16, &[4], &[2], true),
        of(DType::I64, &[4], &[2], true),
        of(DType::U8, &[4], &[2], true),
        of(DType::F32, &[0], &[2], true),
        of(DType::F32, &[4], &[0], true),
    ]
}
