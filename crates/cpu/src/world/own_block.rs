//! The kernel of `own_block`: nothing is sent.

use tonnage_core::error::Result;
use tonnage_ops::world::buckets::world;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::GRAIN;
use crate::strided;
use crate::workers::for_each_chunk;

/// The kernel of [`OWN_BLOCK`](tonnage_ops::world::own_block::OWN_BLOCK).
pub static OWN_BLOCK: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let Some(world) = world(k.attrs) else { return Ok(()) };
    let own = world.own_range(x.layout.count());
    with_width!(x.dtype, T => {
        let (values, padding) = out.slice::<T>().split_at_mut(own.len());
        let data = x.slice::<T>();
        for_each_chunk(k.workers, values, GRAIN, &|chunk, out| {
            strided::copy(&x.layout, data, own.start + chunk * GRAIN, out);
        })?;
        padding.fill(bytemuck::Zeroable::zeroed());
    });
    Ok(())
}
