//! What kernels on matrices share: their sizes, loops over a batch that work on each matrix where it lies, and a slot
//! of scratch for each that is worked on at once.

use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::lent::Data;
use tonnage_core::{Bytes, Element};

use crate::kernel::Kernel;
use crate::parallel::{for_each_item, rows_at_once};
use crate::strided;
use crate::workers::{Single, Workers, for_each_chunk};

/// How many matrices, and their rows and columns.
pub fn dims(op: &'static str, sizes: &[usize]) -> Result<(usize, usize, usize)> {
    match sizes {
        [batch @ .., rows, columns] => Ok((batch.iter().product(), *rows, *columns)),
        _ => {
            let (shape, expected) = (sizes.into(), "at least 2".into());
            Err(ErrorKind::RankMismatch { op, shape, expected }.into())
        }
    }
}

/// Fills the output with input `from`, where it is not there already, and calls `f(number, matrix)` for
/// each of its matrices.
pub fn each_matrix<T: Element>(
    op: &'static str,
    k: &mut Kernel,
    from: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<()> {
    let (input, out) = (&k.inputs[from], &mut k.outputs[0]);
    let (_, rows, columns) = dims(op, &out.sizes)?;
    let size = rows * columns;
    let at_once = rows_at_once(size);
    for_each_chunk(k.workers, out.slice::<T>(), size * at_once, &|chunk, matrices| {
        for (i, matrix) in matrices.chunks_mut(size).enumerate() {
            let number = chunk * at_once + i;
            if let Data::Slice(_) = input.data {
                strided::copy(&input.layout, input.slice::<T>(), number * size, matrix);
            }
            f(number, matrix);
        }
    })?;
    Ok(())
}

/// Bytes of scratch for the matrices that are worked on at once: one a thread.
pub fn for_batch(batch: usize, threads: usize, slot: usize) -> Bytes {
    Bytes::of(batch.min(threads.max(1)).saturating_mul(slot))
}

/// What is done with the elements that belong to a matrix, of that number, and a slot of scratch.
pub type WithSlot<'f, T> =
    &'f (dyn Fn(usize, &mut [T], &mut [u8], &dyn Workers) -> Result<()> + Sync);

/// Calls `f` for each `size` elements of `out`, which belong to a matrix of `work` elements: on as many threads as are
/// free, or with all of them where there is one matrix.
pub fn each_in_slot<T: Send>(
    (out, size, work): (&mut [T], usize, usize),
    (scratch, slot): (&mut [u8], usize),
    workers: &dyn Workers,
    f: WithSlot<T>,
) -> Result<()> {
    let batch = out.len().checked_div(size).unwrap_or(0);
    if batch <= 1 {
        return if batch == 1 { f(0, out, scratch, workers) } else { Ok(()) };
    }
    // Small ones are handed out together.
    let at_once = rows_at_once(work).min(batch.div_ceil(4 * workers.threads().max(1)));
    let items = out.chunks_mut(size * at_once).enumerate();
    for_each_item(workers, items, scratch, slot, &|(chunk, out), slot| {
        let mut own = out.chunks_mut(size).enumerate();
        own.try_for_each(|(i, out)| f(chunk * at_once + i, out, slot, &Single(workers)))
    })
}

/// Threads within a matrix: all of them where it is the only one.
pub fn inside(batch: usize, threads: usize) -> usize {
    if batch == 1 { threads.max(1) } else { 1 }
}
