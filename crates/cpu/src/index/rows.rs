//! Rows along an axis: the loop that puts them into a table, which the kernels of the two scatters, `rows_to_dense` and
//! updates of rows share. Rows are prefetched, as those that `gather` reads are.

use tonnage_core::Element;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::walk::StridedAxes;
use tonnage_ops::index::rows::axis;

use super::indices::Indices;
use crate::kernel::Kernel;
use crate::parallel::{GRAIN, strides};
use crate::strided;
use crate::workers::{Workers, for_each_chunk};
use tonnage_simd::prefetch;

/// Rows lie anywhere, so the machine does not guess the next one: it is prefetched this many rows before it is used.
pub const AHEAD: usize = 16;

/// Of a longer row the machine sees itself how it goes on.
const ASKED: usize = 1024;

/// Asks for a row that is about to be read.
#[inline]
pub fn ask_for<T: Element>(data: &[T], at: usize, row: usize) {
    let len = row.min(ASKED / size_of::<T>());
    prefetch::to_read(bytemuck::cast_slice(data.get(at..at + len).unwrap_or(&[])));
}

/// The table, with `put` done for every row in the order of the indices.
///
/// Each thread owns a part of the table and goes through all indices for the rows that fall into it,
/// so every element sees its rows in index order at any number of threads, without atomics.
pub fn scatter<T: Element>(
    op: &'static str,
    k: &mut Kernel,
    put: impl Fn(&mut T, T) + Sync,
) -> Result<()> {
    let axis = axis(op, k.attrs)?;
    let [table, indices, rows] = k.inputs else {
        return Err(bad_argument(op, "the kernel was lent no three inputs", "report this"));
    };
    let [out, ..] = &mut *k.outputs else {
        return Err(bad_argument(op, "the kernel was lent no output", "report this"));
    };
    let start = |from: usize, piece: &mut [T]| {
        if let Data::Slice(_) = table.data {
            strided::copy(&table.layout, table.slice::<T>(), from, piece);
        }
    };
    put_rows(op, axis, [indices, rows], out, k.workers, start, put)
}

/// The same for an output that starts as `start` makes each piece of it, given where the piece begins.
pub fn put_rows<T: Element>(
    op: &'static str,
    axis: usize,
    [indices, rows]: [&In; 2],
    out: &mut Out,
    workers: &dyn Workers,
    start_with: impl Fn(usize, &mut [T]) + Sync,
    put: impl Fn(&mut T, T) + Sync,
) -> Result<()> {
    let size = out.sizes[axis];
    let row: usize = out.sizes[axis + 1..].iter().product();
    let blocks: usize = out.sizes[..axis].iter().product();
    let indices = Indices::checked(op, indices, size)?;
    let count = indices.count();
    let (data, axes) = (rows.slice::<T>(), StridedAxes::from(&rows.layout));
    let first_within = axes.sizes.len() - (out.sizes.len() - axis - 1);
    // Rows may be broadcast: each lies close together, but not one behind the other.
    let (numbers, within) = (axes.part(0..first_within), axes.part(first_within..axes.sizes.len()));
    let (in_order, in_runs) = (axes.is_contiguous(), within.is_contiguous());
    let pieces = match blocks {
        1 if (count + size) * row >= GRAIN => workers.threads().clamp(1, size.max(1)),
        _ => 1,
    };
    let (block, chunk) = (size * row, size.div_ceil(pieces) * row);
    for_each_chunk(workers, out.slice::<T>(), chunk, &|number, piece| {
        let start = number * chunk;
        start_with(start, piece);
        let (first, here) = (start % block / row, piece.len() / row);
        let here = |i: usize| indices.get(i).checked_sub(first).filter(|at| *at < here);
        for range in strides(workers, 0..count, row) {
            for i in range {
                if i + AHEAD < count
                    && let Some(next) = here(i + AHEAD)
                {
                    ask_for(piece, next * row, row);
                }
                let Some(at) = here(i) else { continue };
                let to = &mut piece[at * row..(at + 1) * row];
                let number = start / block * count + i;
                let at = match in_order {
                    true => axes.offset + number * row,
                    false if in_runs => numbers.at(number),
                    false => {
                        strided::combine(axes, data, number * row, to, &put);
                        continue;
                    }
                };
                to.iter_mut().zip(&data[at..][..row]).for_each(|(to, from)| put(to, *from));
            }
        }
    })?;
    Ok(())
}
