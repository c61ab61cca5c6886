//! Rows along an axis: type rules and axes that `gather`, `gather_last`, the two scatters and updates of rows share.
//!
//! With `indices` of shape `I` into axis `a` of a table, the rows have the shape
//! `table[..a] + I + table[a + 1..]`. No attributes mean axis 0.

use tonnage_core::error::Result;
use tonnage_core::row::{AxisMap, AxisOf};
use tonnage_core::{Attrs, Call, OpDef, Shape, TensorType};

use super::scatter_add::SCATTER_ADD;
use super::scatter_update::SCATTER_UPDATE;
use crate::infer::{along, bad_attrs, inputs, integer, joined, rank_at_least, same_dtype, shape};
use crate::rules;

/// The axis that the indices point into.
pub fn axis(op: &'static str, attrs: &Attrs) -> Result<usize> {
    match attrs {
        Attrs::None => Ok(0),
        Attrs::Axis(axis) => Ok(*axis),
        other => Err(bad_attrs(op, other, "an axis, or nothing for axis 0")),
    }
}

/// The shape of the rows that `indices` name in `table`.
pub fn rows_shape(
    op: &'static str,
    table: &TensorType,
    indices: &TensorType,
    attrs: &Attrs,
) -> Result<Shape> {
    integer(op, indices)?;
    rank_at_least(op, table, 1, "the table has rows to point at")?;
    let axis = table.shape.axis(op, rules::infer::from_front(axis(op, attrs)?))?;
    Ok(joined(&[&table.shape[..axis], &indices.shape, &table.shape[axis + 1..]]))
}

/// The type rule of the scatters: table, indices, rows; gives the table's type.
pub fn scatter_type(op: &'static str, call: &Call) -> Result<TensorType> {
    let [table, indices, rows] = inputs(op, call)?;
    let needed = rows_shape(op, table, indices, call.attrs)?;
    same_dtype(op, table, rows)?;
    let help = "rows must have the shape of the indices in place of the table's axis";
    shape(op, &rows.shape, &needed, help)?;
    Ok(table.clone())
}

/// Axes of a table that is written by rows: the one that is pointed into cannot be cut, for the
/// indices would point beside the pieces.
pub fn scatter_axes(call: &Call) -> AxisMap {
    let at = axis("scatter", call.attrs).unwrap_or(0);
    let between = call.inputs[1].shape.rank();
    let axes = (0..call.inputs[0].shape.rank())
        .map(|a| match a {
            a if a < at => along(&[(0, a), (2, a)]),
            a if a == at => AxisOf::Mixed,
            a => along(&[(0, a), (2, a + between - 1)]),
        })
        .collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

/// Axes of rows that are read from a table.
pub fn gather_axes(call: &Call) -> AxisMap {
    let at = axis("gather", call.attrs).unwrap_or(0);
    let (rank, between) = (call.inputs[0].shape.rank(), call.inputs[1].shape.rank());
    let axes = (0..at)
        .map(|a| along(&[(0, a)]))
        .chain((0..between).map(|a| along(&[(1, a)])))
        .chain((at + 1..rank).map(|a| along(&[(0, a)])))
        .collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

/// Whether an op puts rows into its first input along the first axis.
pub fn puts_rows(op: &OpDef, attrs: &Attrs) -> bool {
    let along_first = matches!(attrs, Attrs::None | Attrs::Axis(0));
    (*op == SCATTER_ADD || *op == SCATTER_UPDATE) && along_first
}
