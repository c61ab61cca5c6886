//! The kernels of `all_gather` and `gather_blocks`: blocks come to where they lie in the result.

use tonnage_core::error::Result;
use tonnage_ops::world::buckets::world;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::GRAIN;
use crate::strided;
use crate::workers::for_each_chunk;

/// The kernel of [`ALL_GATHER`](tonnage_ops::world::all_gather::ALL_GATHER).
pub static ALL_GATHER: KernelDef = KernelDef {
    run: |k| kernel(k, "all_gather"),
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};

/// The kernel of [`GATHER_BLOCKS`](tonnage_ops::world::gather_blocks::GATHER_BLOCKS).
pub static GATHER_BLOCKS: KernelDef = KernelDef {
    run: |k| kernel(k, "gather_blocks"),
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel, op: &'static str) -> Result<()> {
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let Some(world) = world(k.attrs) else { return Ok(()) };
    let block = x.layout.count();
    with_width!(x.dtype, T => {
        let (data, all) = (x.slice::<T>(), out.slice::<T>());
        // A last block is longer than what is left of the result, and zeros are behind that.
        let first = (world.rank() * block).min(all.len());
        let own = block.min(all.len() - first);
        for_each_chunk(k.workers, &mut all[first..][..own], GRAIN, &|chunk, out| {
            strided::copy(&x.layout, data, chunk * GRAIN, out);
        })?;
    });
    world.must(world.engine().all_gather(op, block * x.dtype.size(), out.data));
    Ok(())
}
