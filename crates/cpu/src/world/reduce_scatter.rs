//! The kernels of `reduce_scatter` and `reduce_blocks`. Blocks of an input in any layout are packed into one half of the bucket, and come into the other;
//! zeros stand for what a last block has not.

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call};
use tonnage_ops::world::buckets::{at_once, world};

use super::{copy_in, figures, sum_blocks};
use crate::kernel::{Kernel, KernelDef};
use crate::number::{Number, with_sum};
use crate::strided;

/// The kernel of [`REDUCE_SCATTER`](tonnage_ops::world::reduce_scatter::REDUCE_SCATTER).
pub static REDUCE_SCATTER: KernelDef = KernelDef {
    run: |k| with_sum!("reduce_scatter", k.outputs[0].dtype, T => run::<T>(k, "reduce_scatter")),
    scratch,
    has_epilogue: false,
    streaming: None,
};

/// The kernel of [`REDUCE_BLOCKS`](tonnage_ops::world::reduce_blocks::REDUCE_BLOCKS).
pub static REDUCE_BLOCKS: KernelDef = KernelDef {
    run: |k| with_sum!("reduce_blocks", k.outputs[0].dtype, T => run::<T>(k, "reduce_blocks")),
    scratch,
    has_epilogue: false,
    streaming: None,
};

fn scratch(call: &Call, _: usize) -> Bytes {
    match figures(call) {
        None | Some((.., 1)) => Bytes::ZERO,
        Some((count, size, ranks)) => {
            Bytes::of(2 * ranks * at_once(count.div_ceil(ranks), size, ranks) * size)
        }
    }
}

fn run<T: Number>(k: &mut Kernel, op: &'static str) -> Result<()> {
    let (x, out) = (&k.inputs[0], k.outputs[0].slice::<T>());
    let Some(world) = world(k.attrs).filter(|world| world.size() > 1) else {
        return copy_in(x, out, k.workers);
    };
    let (all, own, ranks) = (x.layout.count(), out.len(), world.size());
    let block = at_once(own, size_of::<T>(), ranks);
    let scratch: &mut [T] = cast_slice_mut(k.scratch);
    let (sent, came) = scratch.split_at_mut(ranks * block);
    for (number, sum) in out.chunks_mut(block.max(1)).enumerate() {
        let (sent, came) = (&mut sent[..ranks * sum.len()], &mut came[..ranks * sum.len()]);
        for (rank, part) in sent.chunks_exact_mut(sum.len()).enumerate() {
            let first = (rank * own + number * block).min(all);
            let (there, missing) = part.split_at_mut(sum.len().min(all - first));
            strided::copy(&x.layout, x.slice::<T>(), first, there);
            missing.fill(T::ZERO);
        }
        world.must(world.engine().all_to_all(op, cast_slice(sent), cast_slice_mut(came)));
        sum_blocks(came, sum, k.workers)?;
    }
    Ok(())
}
