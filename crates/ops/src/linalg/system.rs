//! Systems of linear equations: what the rows of `solve` and `triangular_solve` say in the same words.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::row::{AxisMap, AxisOf, Types};
use tonnage_core::{Attrs, Call};

use super::matrix::{matrices, square};
use crate::infer::{along, bad_attrs, inputs, joined, real, same_dtype, shape};

/// Whether the left side is transposed.
pub fn transposed(op: &'static str, attrs: &Attrs) -> Result<bool> {
    match attrs {
        Attrs::Matmul { transpose_a, transpose_b: false } => Ok(*transpose_a),
        other => Err(bad_attrs(op, other, "whether the left side is transposed")),
    }
}

/// The attributes that say so.
pub fn side(transposed: bool) -> Attrs {
    Attrs::Matmul { transpose_a: transposed, transpose_b: false }
}

/// `(a [.., n, n], b [.., n, m]) -> x [.., n, m]`
pub fn infer(call: &Call) -> Result<Types> {
    let op = call.op;
    let [a, b] = inputs(op, call)?;
    transposed(op, call.attrs)?;
    real(op, a)?;
    same_dtype(op, a, b)?;
    square(op, a)?;
    matrices(op, b)?;
    let columns = &b.shape[b.shape.rank() - 1..];
    let needed = joined(&[&a.shape[..a.shape.rank() - 1], columns]);
    shape(op, &b.shape, &needed, "the right side must have the left side's batch and rows")?;
    Ok(smallvec![b.clone()])
}

/// The batch runs along both, columns along those of the right side.
pub fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[1].shape.rank();
    let batch = (0..rank.saturating_sub(2)).map(|a| along(&[(0, a), (1, a)]));
    let axes = batch.chain([AxisOf::Mixed, along(&[(1, rank.saturating_sub(1))])]).collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}
