//! The kernel of `broadcast`.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;

use super::copy_in;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;

/// The kernel of [`BROADCAST`](tonnage_ops::world::broadcast::BROADCAST).
pub static BROADCAST: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let Attrs::Root { world, root } = k.attrs else { return Ok(()) };
    if world.rank() == *root {
        with_width!(x.dtype, T => copy_in::<T>(x, out.slice(), k.workers))?;
    }
    world.must(world.engine().broadcast("broadcast", *root, out.data));
    Ok(())
}
