//! Rows of a tensor by indices into several leading axes: type rules, axes and samples that `gather_nd` and the
//! `scatter_nd` ops share.
//!
//! A table of shape `B + D + R`, indices of shape `B + I + [k]` where D has k axes, rows of shape `B + I + R`: each
//! vector of k indices names one row. The attributes say how many axes B has, which both share and are walked
//! through together.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::row::{AxisMap, AxisOf, Call, Sample, Values};
use tonnage_core::{DType, Dim, Shape, TensorType};

use crate::infer::{self, along};

/// How the axes of a call fall apart.
pub struct NdAxes {
    /// Axes that table and indices share.
    pub batch: usize,
    /// Axes of the table that an index names a position in.
    pub depth: usize,
}

/// Checks table and indices against each other.
pub fn axes(call: &Call) -> Result<NdAxes> {
    let Attrs::Count(batch) = *call.attrs else {
        return Err(infer::bad_attrs(call.op, call.attrs, "how many axes are shared"));
    };
    let [table, indices, ..] = call.inputs else {
        let (op, expected, got) = (call.op, "2 or 3".into(), call.inputs.len());
        return Err(ErrorKind::InputCount { op, expected, got }.into());
    };
    infer::integer(call.op, indices)?;
    let Some((last, outer)) = indices.shape.split_last() else {
        return infer::rank_at_least(call.op, indices, 1, "the last axis is one index")
            .map(|()| NdAxes { batch, depth: 0 });
    };
    let Some(depth) = last.known() else {
        let what = format!("the last axis of the indices {indices} is open");
        return Err(bad_argument(
            call.op,
            what,
            "it says how many axes an index names a position in",
        ));
    };
    let rank = table.shape.rank();
    if batch > outer.len() || batch.saturating_add(depth) > rank {
        let what =
            format!("{batch} shared axes and indices into {depth} more of {table}, by {indices}");
        return Err(bad_argument(call.op, what, "the table has too few axes, or the indices have"));
    }
    if outer[..batch] != table.shape[..batch] {
        let (left, right) = (table.shape.clone(), indices.shape.clone());
        let help = format!("the first {batch} axes must be equal");
        return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
    }
    Ok(NdAxes { batch, depth })
}

/// The shape of the rows that the indices name.
pub fn rows_shape(call: &Call) -> Result<Shape> {
    let NdAxes { batch, depth } = axes(call)?;
    let (table, indices) = (&call.inputs[0].shape, &call.inputs[1].shape);
    let outer: &[Dim] = &indices[..indices.rank() - 1];
    Ok(infer::joined(&[outer, &table[batch + depth..]]))
}

/// The type rule of an op that puts rows into a table.
pub fn scatter_type(call: &Call) -> Result<TensorType> {
    let [table, _, rows] = infer::inputs(call.op, call)?;
    infer::same_dtype(call.op, table, rows)?;
    let needed = rows_shape(call)?;
    infer::shape(call.op, &rows.shape, &needed, "one row for every index")?;
    Ok(table.clone())
}

/// Shared axes run along all, axes of a row along table and rows.
pub fn scatter_axes(call: &Call) -> AxisMap {
    let Ok(NdAxes { batch, depth }) = axes(call) else { return AxisMap::default() };
    let rank = call.inputs[0].shape.rank();
    let outer = call.inputs[1].shape.rank() - 1;
    let axis = |i: usize| match i {
        i if i < batch => along(&[(0, i), (1, i), (2, i)]),
        i if i < batch + depth => AxisOf::Mixed,
        i => along(&[(0, i), (2, i - batch - depth + outer)]),
    };
    AxisMap { outputs: vec![(0..rank).map(axis).collect()], summed: Vec::new() }
}

/// Tables and indices of every kind; with rows for ops that put them in.
pub fn samples(with_rows: bool, dtypes: &[DType]) -> Vec<Sample> {
    let of = |dtype, table: &[usize], index, indices: &[usize], batch: usize| {
        let types = [TensorType::new(dtype, table), TensorType::new(index, indices)];
        let attrs = Attrs::Count(batch);
        let call = Call { op: "gather_nd", inputs: &types, attrs: &attrs, regions: &[] };
        let rows = rows_shape(&call).unwrap_or_default();
        let depth = indices.last().copied().unwrap_or(0);
        let least = table[batch..batch + depth].iter().copied().min().unwrap_or(1);
        let mut types = types.to_vec();
        if with_rows {
            types.push(TensorType::new(dtype, rows));
        }
        Sample::of(&types, attrs).with(1, Values::Below(least))
    };
    let mut all: Vec<Sample> =
        dtypes.iter().map(|d| of(*d, &[4, 3], DType::I32, &[5, 1], 0)).collect();
    let usual = if dtypes.contains(&DType::F32) { DType::F32 } else { DType::Bool };
    all.extend([
        of(usual, &[4, 3, 2], DType::I64, &[3, 2, 2], 0),
        of(usual, &[2, 3], DType::U8, &[4, 2], 0),
        of(usual, &[2, 5, 3], DType::I64, &[2, 4, 1], 1),
        of(usual, &[2, 3, 4, 2], DType::I16, &[2, 3, 2, 1], 2),
        of(usual, &[2, 5], DType::I64, &[2, 1], 1),
        of(usual, &[3], DType::I32, &[1], 0),
        of(usual, &[3, 2], DType::I32, &[2, 0], 0),
        of(usual, &[3, 2], DType::I32, &[0, 1], 0),
        of(usual, &[3, 0], DType::I32, &[4, 1], 0),
        of(usual, &[300, 40], DType::I32, &[500, 1], 0),
    ]);
    all
}
