//! Rows of a tensor by indices into several leading axes: checked indices and the loops that the kernels of `gather_nd`
//! and the `scatter_nd` ops share.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::lent::{Data, In};
use tonnage_core::{Element, Sizes};

use super::indices::Indices;
use crate::kernel::Kernel;
use crate::parallel::{GRAIN, strides};
use crate::strided::{self, Positions};
use crate::workers::{Workers, for_each_chunk};

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
