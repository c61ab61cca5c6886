//! The kernel of `argsort`: scratch is a key and an index for every element of as many rows as are sorted at once.

use bytemuck::cast_slice_mut;
use tonnage_core::Bytes;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::row::Call;
use tonnage_ops::index::argsort::counts_in_i32;

use super::order::{Ordered, Packed, in_order, packed_bytes, with_ordered};
use crate::kernel::{Kernel, KernelDef};
use crate::parallel::{ChunkedPair, for_each_pair, strides};
use crate::strided::Positions;
use crate::workers::Workers;

/// The kernel of [`ARGSORT`](tonnage_ops::index::argsort::ARGSORT).
pub static ARGSORT: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Rows that are sorted at once: one a thread.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(sizes) = call.inputs.first().and_then(|ty| ty.shape.most()) else {
        return Bytes::ZERO;
    };
    let n = sizes.last().copied().unwrap_or(0);
    let rows: usize = sizes[..sizes.len().saturating_sub(1)].iter().product();
    Bytes::of(rows.min(threads.max(1)) * n * packed_bytes(call.inputs[0].dtype))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Descending(descending) = *k.attrs else { return Ok(()) };
    let x = &k.inputs[0];
    let n = x.layout.sizes.last().copied().unwrap_or(0);
    counts_in_i32("argsort", n)?;
    let out = k.outputs[0].slice::<i32>();
    with_ordered!(x.dtype, T, P => {
        argsort::<T, P>(x, n, descending, out, cast_slice_mut(k.scratch), k.workers)
    })
}

fn argsort<T: Ordered, P: Packed>(
    x: &In,
    n: usize,
    descending: bool,
    out: &mut [i32],
    scratch: &mut [P],
    workers: &dyn Workers,
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let together = (scratch.len() / n).max(1);
    for (group, rows) in out.chunks_mut(together * n).enumerate() {
        let room = &mut scratch[..rows.len()];
        let pair = ChunkedPair { a: rows, chunk_a: n, b: room, chunk_b: n };
        for_each_pair(workers, pair, &|i, row, room| {
            if sorted::<T, P>(x, (group * together + i) * n, descending, room, workers).is_err() {
                return; // as all other rows do
            }
            for (to, packed) in row.iter_mut().zip(room) {
                *to = packed.index() as i32;
            }
        })?;
    }
    Ok(())
}

/// The elements from `first` on, packed and in order.
pub(super) fn sorted<T: Ordered, P: Packed>(
    x: &In,
    first: usize,
    descending: bool,
    room: &mut [P],
    workers: &dyn Workers,
) -> Result<()> {
    let (data, positions) = (x.slice::<T>(), Positions::of(&x.layout));
    // Inverted within its own width, so that the index below still counts up.
    let most: u64 = u64::MAX >> (64 - 8 * size_of::<T>());
    for range in strides(workers, 0..room.len(), 1) {
        for i in range {
            let key: u64 = data[positions.at(first + i)].level_key().into();
            room[i] = P::pack(if descending { most - key } else { key }, i);
        }
    }
    in_order(room, workers)
}
