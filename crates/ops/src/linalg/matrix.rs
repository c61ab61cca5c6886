//! What ops on matrices share: type rules, axes, and kernels that work on a matrix where it lies.

use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::kernel::{Data, Kernel};
use tonnage_core::row::{AxisMap, AxisOf};
use tonnage_core::workers::{Single, for_each_chunk};
use tonnage_core::{Bytes, Call, Element, TensorType, Workers};

use crate::infer::{along, rank_at_least};
use crate::parallel::{for_each_item, rows_at_once};
use crate::strided;

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

/// Threads within a matrix: all of them where it is the only one.
pub fn inside(batch: usize, threads: usize) -> usize {
    if batch == 1 { threads.max(1) } else { 1 }
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
