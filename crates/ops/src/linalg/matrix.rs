//! What ops on matrices share: type rules and axes.

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{AxisMap, AxisOf};
use tonnage_core::{Call, TensorType};

use crate::infer::{along, rank_at_least};

/// A batch of matrices.
pub fn matrices(op: &'static str, ty: &TensorType) -> Result<()> {
    rank_at_least(op, ty, 2, "a matrix is the last two axes")
}

/// A batch of square matrices.
pub fn square(op: &'static str, ty: &TensorType) -> Result<()> {
    matrices(op, ty)?;
    let rank = ty.shape.rank();
    if ty.shape[rank - 2] == ty.shape[rank - 1] {
        return Ok(());
    }
    let what = format!("the matrices of {ty} are not square");
    Err(bad_argument(op, what, "the last two axes must have the same length"))
}

/// The batch runs along that of the only input; a matrix cannot be cut.
pub fn batch_axes(call: &Call) -> AxisMap {
    let batch = call.inputs[0].shape.rank().saturating_sub(2);
    let batch = (0..batch).map(|a| along(&[(0, a)]));
    let axes = batch.chain([AxisOf::Mixed, AxisOf::Mixed]).collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}
