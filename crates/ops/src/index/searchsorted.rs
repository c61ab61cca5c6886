//! `searchsorted`: where values would be put into sorted rows to keep them sorted, as i32.
//!
//! Left: before elements that are equal; right: behind them. NaN counts as larger than everything. Rows that are not
//! sorted give positions that mean nothing, and no error: a check would read them all.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, Values};
use tonnage_core::{DType, OpDef, TensorType};

use super::along::{leading_axes, one_output};
use super::argsort::counts_in_i32;
use crate::OpId;
use crate::infer::{
    along, bad_attrs, cost, elements, inputs, joined, rank_at_least, same_dtype, shape,
};

/// `(sorted [.., n], values [.., m]) -> i32 [.., m]`; whether behind equal ones as [`Attrs::Right`].
pub static SEARCHSORTED: OpDef = OpDef {
    id: OpId::Searchsorted as u16,
    name: "searchsorted",
    doc: "Where values would be put into sorted rows to keep them sorted, as i32.",
    infer,
    axes: |call| {
        let rank = call.inputs[1].shape.rank();
        one_output(leading_axes(rank, 2, along(&[(1, rank.saturating_sub(1))])))
    },
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let flops = call.inputs.get(1).map_or(0, elements).saturating_mul(20);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let op = "searchsorted";
    let [sorted, values] = inputs(op, call)?;
    let Attrs::Right(_) = call.attrs else {
        return Err(bad_attrs(op, call.attrs, "whether behind equal elements"));
    };
    same_dtype(op, sorted, values)?;
    rank_at_least(op, sorted, 1, "it searches along the last axis")?;
    rank_at_least(op, values, 1, "it searches along the last axis")?;
    let rank = sorted.shape.rank();
    counts_in_i32(op, sorted.shape[rank - 1].known().unwrap_or(0))?;
    let last = values.shape.rank() - 1;
    let needed = joined(&[&sorted.shape[..rank - 1], &values.shape[last..]]);
    shape(op, &values.shape, &needed, "all axes but the last must be equal")?;
    Ok(smallvec![TensorType::new(DType::I32, &values.shape)])
}

/// Rows of equal elements are sorted; what their values are decides where others go.
fn samples() -> Vec<Sample> {
    let of = |dtype, lead: &[usize], n: usize, m: usize, right| {
        let ty = |last| TensorType::new(dtype, [lead, &[last]].concat());
        Sample::of(&[ty(n), ty(m)], Attrs::Right(right))
            .with(0, Values::Between(3.0, 3.0))
            .with(1, Values::Below(6))
    };
    let mut all: Vec<Sample> = DType::ALL
        .into_iter()
        .filter(|d| *d != DType::Bool)
        .map(|d| of(d, &[2], 4, 5, false))
        .collect();
    all.extend([
        of(DType::F32, &[], 5, 3, true),
        of(DType::F32, &[2, 2], 1, 2, false),
        of(DType::F32, &[2], 0, 3, true),
        of(DType::F32, &[2], 3, 0, true),
        of(DType::F32, &[0], 3, 2, true),
        of(DType::F32, &[3], 1025, 700, true),
    ]);
    all
}
