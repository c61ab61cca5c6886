//! The kernel of `diag`.

use tonnage_core::Element;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::In;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::rows_at_once;
use crate::strided::Positions;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`DIAG`](tonnage_ops::shape::diag::DIAG).
pub static DIAG: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Diag { diagonal, .. } = *k.attrs else { return Ok(()) };
    let (v, out) = (&k.inputs[0], &mut k.outputs[0]);
    let [.., rows, columns] = out.sizes[..] else { return Ok(()) };
    with_width!(v.dtype, T => put::<T>(v, diagonal, rows, columns, out.slice(), k.workers))
}

fn put<T: Element>(
    v: &In,
    diagonal: i64,
    rows: usize,
    columns: usize,
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let (data, positions) = (v.slice::<T>(), Positions::of(&v.layout));
    let length = v.layout.sizes.last().copied().unwrap_or(0);
    // Below the main diagonal the first element stands in a later row.
    let first = diagonal.min(0).unsigned_abs() as usize;
    let at_once = rows_at_once(columns);
    for_each_chunk(workers, out, (columns * at_once).max(1), &|chunk, out| {
        // All zero bits are zero, or false, in every dtype.
        out.fill(T::zeroed());
        for (i, row) in out.chunks_mut(columns).enumerate() {
            let number = chunk * at_once + i;
            let (matrix, r) = (number / rows, number % rows);
            if let Some(at) = r.checked_sub(first).filter(|at| *at < length) {
                row[(r as i64 + diagonal) as usize] = data[positions.at(matrix * length + at)];
            }
        }
    })
}
