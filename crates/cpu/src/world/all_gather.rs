//! The kernel of `all_gather`: blocks come to where they lie in the result.

use tonnage_core::error::Result;

use super::{copy_in, world};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;

/// The kernel of [`ALL_GATHER`](tonnage_ops::world::all_gather::ALL_GATHER).
pub static ALL_GATHER: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let Some(world) = world(k.attrs) else { return Ok(()) };
    let own = x.layout.count();
    with_width!(x.dtype, T => {
        copy_in::<T>(x, &mut out.slice()[world.rank() * own..][..own], k.workers)?;
    });
    world.must(world.engine().all_gather("all_gather", out.data));
    Ok(())
}
