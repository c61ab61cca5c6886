//! The kernels of `all_reduce` and `reduce_to`: sums in place, bucket by bucket, as [`Buckets`] says.

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, World};
use tonnage_ops::world::buckets::{Buckets, world};

use super::{copy_in, figures, sum_blocks};
use crate::kernel::{Kernel, KernelDef};
use crate::number::{Number, with_sum};
use crate::workers::Workers;

/// The kernel of [`ALL_REDUCE`](tonnage_ops::world::all_reduce::ALL_REDUCE).
pub static ALL_REDUCE: KernelDef = KernelDef {
    run: |k| with_sum!("all_reduce", k.outputs[0].dtype, T => run::<T>(k, "all_reduce")),
    scratch,
    has_epilogue: false,
    streaming: None,
};

/// The kernel of [`REDUCE_TO`](tonnage_ops::world::reduce_to::REDUCE_TO).
pub static REDUCE_TO: KernelDef = KernelDef {
    run: |k| with_sum!("reduce_to", k.outputs[0].dtype, T => run::<T>(k, "reduce_to")),
    scratch,
    has_epilogue: false,
    streaming: None,
};

fn scratch(call: &Call, _: usize) -> Bytes {
    match figures(call) {
        None | Some((0, ..) | (.., 1)) => Bytes::ZERO,
        Some((count, size, ranks)) => {
            Bytes::of(Buckets::of(count, size, ranks).staged(ranks) * size)
        }
    }
}

fn run<T: Number>(k: &mut Kernel, op: &'static str) -> Result<()> {
    let out = k.outputs[0].slice::<T>();
    copy_in(&k.inputs[0], out, k.workers)?;
    let Some(world) = world(k.attrs).filter(|world| world.size() > 1) else { return Ok(()) };
    if out.is_empty() {
        return Ok(());
    }
    sum_over_ranks(op, world, out, cast_slice_mut(k.scratch), k.workers)?;
    match k.attrs {
        Attrs::Root { root, .. } if world.rank() != *root => out.fill(T::ZERO),
        _ => {}
    }
    Ok(())
}

/// The sum over all ranks, on all ranks.
fn sum_over_ranks<T: Number>(
    op: &'static str,
    world: &World,
    values: &mut [T],
    staged: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let (rank, ranks, engine) = (world.rank(), world.size(), world.engine());
    let Buckets { bucket, bucketed, gathered } = Buckets::of(values.len(), size_of::<T>(), ranks);
    let (buckets, rest) = values.split_at_mut(bucketed);
    for part in buckets.chunks_mut(bucket.max(1)) {
        let staged = &mut staged[..part.len()];
        world.must(engine.all_to_all(op, cast_slice(part), cast_slice_mut(staged)));
        let block = part.len() / ranks;
        sum_blocks(staged, &mut part[rank * block..][..block], workers)?;
        world.must(engine.all_gather(op, block * size_of::<T>(), cast_slice_mut(part)));
    }
    for part in rest.chunks_mut(gathered.max(1)) {
        let staged = &mut staged[..part.len() * ranks];
        staged[rank * part.len()..][..part.len()].copy_from_slice(part);
        world.must(engine.all_gather(op, size_of_val(part), cast_slice_mut(staged)));
        sum_blocks(staged, part, workers)?;
    }
    Ok(())
}
