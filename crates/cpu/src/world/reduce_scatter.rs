//! The kernel of `reduce_scatter`. Blocks of an input in any layout are packed into one half of the bucket, and come into the other.

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call};

use super::{BUCKET, copy_in, figures, sum_blocks, world};
use crate::kernel::{Kernel, KernelDef};
use crate::number::{Number, with_number};
use crate::strided;

/// The kernel of [`REDUCE_SCATTER`](tonnage_ops::world::reduce_scatter::REDUCE_SCATTER).
pub static REDUCE_SCATTER: KernelDef = KernelDef {
    run: |k| with_number!("reduce_scatter", k.outputs[0].dtype, T => run::<T>(k)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

/// Elements of a block that goes to one rank at once, of so many elements that it gets in all.
fn at_once(own: usize, size: usize, ranks: usize) -> usize {
    (BUCKET / 2 / (ranks * size)).max(1).min(own)
}

fn scratch(call: &Call, _: usize) -> Bytes {
    match figures(call) {
        None | Some((.., 1)) => Bytes::ZERO,
        Some((count, size, ranks)) => {
            Bytes::of(2 * ranks * at_once(count / ranks, size, ranks) * size)
        }
    }
}

fn run<T: Number>(k: &mut Kernel) -> Result<()> {
    let (x, out) = (&k.inputs[0], k.outputs[0].slice::<T>());
    let Some(world) = world(k.attrs).filter(|world| world.size() > 1) else {
        return copy_in(x, out, k.workers);
    };
    let (own, ranks) = (out.len(), world.size());
    let block = at_once(own, size_of::<T>(), ranks);
    let scratch: &mut [T] = cast_slice_mut(k.scratch);
    let (sent, came) = scratch.split_at_mut(ranks * block);
    for (number, sum) in out.chunks_mut(block.max(1)).enumerate() {
        let (sent, came) = (&mut sent[..ranks * sum.len()], &mut came[..ranks * sum.len()]);
        for (rank, part) in sent.chunks_exact_mut(sum.len()).enumerate() {
            strided::copy(&x.layout, x.slice::<T>(), rank * own + number * block, part);
        }
        let moved =
            world.engine().all_to_all("reduce_scatter", cast_slice(sent), cast_slice_mut(came));
        world.must(moved);
        sum_blocks(came, sum, k.workers)?;
    }
    Ok(())
}
