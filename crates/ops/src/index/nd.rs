//! Rows of a tensor by indices into several leading axes: what `gather_nd` and the `scatter_nd` ops share.
//!
//! A table of shape `B + D + R`, indices of shape `B + I + [k]` where D has k axes, rows of shape `B + I + R`: each
//! vector of k indices names one row. The attributes say how many axes B has, which both share and are walked
//! through together.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::kernel::{Data, In, Kernel};
use tonnage_core::row::{AxisMap, AxisOf, Call, Sample, Values};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{DType, Dim, Element, Shape, Sizes, TensorType, Workers};

use super::indices::Indices;
use crate::infer::{self, along};
use crate::parallel::{GRAIN, strides};
use crate::strided::{self, Positions};

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

/// The indices of a call: for every row, where in the table it is.
pub struct NdIndices<'a> {
    indices: Indices<'a>,
    /// Lengths of the axes that are named.
    named: Sizes,
    /// Rows of each of the shared positions.
    pub rows: usize,
    /// Shared positions.
    pub batches: usize,
}

impl<'a> NdIndices<'a> {
    /// Checked against the table's sizes.
    pub fn checked(
        op: &'static str,
        indices: &'a In<'a>,
        table: &[usize],
        batch: usize,
        workers: &dyn Workers,
    ) -> Result<NdIndices<'a>> {
        let sizes = &indices.layout.sizes;
        let depth = sizes.last().copied().unwrap_or(0);
        let named: Sizes = table[batch..batch + depth].into();
        let all = Indices::unchecked(indices);
        for range in strides(workers, 0..all.count(), 1) {
            for position in range {
                let (index, size) = (all.signed(position), named[position % depth.max(1)]);
                if !usize::try_from(index).is_ok_and(|index| index < size) {
                    return Err(ErrorKind::IndexOutOfRange { op, index, position, size }.into());
                }
            }
        }
        workers.check()?;
        let batches = sizes[..batch].iter().product();
        let rows = sizes[batch..sizes.len() - 1].iter().product();
        Ok(NdIndices { indices: all, named, rows, batches })
    }

    /// The components of index number `row`, over all shared positions.
    fn components(&self, row: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let depth = self.named.len();
        (0..depth).map(move |j| (j, self.indices.get(row * depth + j)))
    }

    /// The table's row, counted within its shared position, that index number `row` names.
    pub fn within(&self, row: usize) -> usize {
        self.components(row).fold(0, |at, (j, index)| at * self.named[j] + index)
    }

    /// How far from the start of its shared position index number `row` points, by the table's strides.
    pub fn distance(&self, row: usize, strides: &[isize]) -> isize {
        self.components(row).map(|(j, index)| index as isize * strides[j]).sum()
    }

    /// Rows of the table at each shared position.
    pub fn table_rows(&self) -> usize {
        self.named.iter().product()
    }
}

/// Puts rows into a table, in the order of the indices: `put(element, row's element)`.
///
/// The output starts as the table. Threads own parts of it and each looks through all indices, so of equal ones
/// the order is kept at any number of threads.
pub fn scatter<T: Element>(
    op: &'static str,
    k: &mut Kernel,
    put: impl Fn(&mut T, T) + Sync,
) -> Result<()> {
    let Attrs::Count(batch) = *k.attrs else { return Ok(()) };
    let [table, indices, rows] = k.inputs else { return Ok(()) };
    let sizes = k.outputs[0].sizes.clone();
    let nd_indices = NdIndices::checked(op, indices, &sizes, batch, k.workers)?;
    let out = k.outputs[0].slice::<T>();
    let row: usize = sizes[batch + nd_indices.named.len()..].iter().product();
    let (data, layout) = (rows.slice::<T>(), &rows.layout);
    let whole = nd_indices.table_rows() * row;
    if whole == 0 || row == 0 {
        return Ok(());
    }
    let many =
        (nd_indices.rows + nd_indices.table_rows()) * row >= GRAIN && nd_indices.batches == 1;
    let pieces = if many { k.workers.threads().clamp(1, nd_indices.table_rows()) } else { 1 };
    let chunk = nd_indices.table_rows().div_ceil(pieces) * row;
    let per_batch = whole.div_ceil(chunk);
    // Pieces never run over the end of a shared position: there is one position, or one piece each.
    for_each_chunk(k.workers, out, chunk, &|number, piece| {
        let (at, part) = (number / per_batch, number % per_batch);
        let start = at * whole + part * chunk;
        if let Data::Slice(_) = table.data {
            strided::copy(&table.layout, table.slice::<T>(), start, piece);
        }
        let (first, here) = (part * chunk / row, piece.len() / row);
        let numbers = at * nd_indices.rows..(at + 1) * nd_indices.rows;
        for range in strides(k.workers, numbers, row) {
            for i in range {
                let Some(to) = nd_indices.within(i).checked_sub(first).filter(|to| *to < here)
                else {
                    continue;
                };
                strided::combine(layout, data, i * row, &mut piece[to * row..(to + 1) * row], &put);
            }
        }
    })?;
    Ok(())
}

/// Copies the rows that the indices name.
pub fn gather<T: Element>(op: &'static str, k: &mut Kernel) -> Result<()> {
    let Attrs::Count(batch) = *k.attrs else { return Ok(()) };
    let [table, indices] = k.inputs else { return Ok(()) };
    let layout = &table.layout;
    let nd_indices = NdIndices::checked(op, indices, &layout.sizes, batch, k.workers)?;
    let depth = nd_indices.named.len();
    let (data, out) = (table.slice::<T>(), k.outputs[0].slice::<T>());
    let outer = strided::axes(layout, 0..batch);
    let inner = strided::axes(layout, batch + depth..layout.sizes.len());
    let (starts, row) = (Positions::of(outer), inner.count());
    if row == 0 {
        return Ok(());
    }
    let at_once = crate::parallel::rows_at_once(row);
    for_each_chunk(k.workers, out, row * at_once, &|chunk, rows| {
        let mut from = inner;
        for (i, to) in rows.chunks_mut(row).enumerate() {
            let number = chunk * at_once + i;
            let start = starts.at(number / nd_indices.rows) as isize;
            let far = nd_indices.distance(number, &layout.strides[batch..]);
            from.offset = (start + far) as usize;
            strided::copy(from, data, 0, to);
        }
    })?;
    Ok(())
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
