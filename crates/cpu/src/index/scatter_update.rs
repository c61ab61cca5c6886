//! The kernel of `scatter_update`: all indices are checked before anything is written.

use tonnage_core::error::Result;

use super::rows::scatter;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;

/// The kernel of [`SCATTER_UPDATE`](tonnage_ops::index::scatter_update::SCATTER_UPDATE).
pub static SCATTER_UPDATE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_width!(k.outputs[0].dtype, T => {
        scatter::<T>("scatter_update", k, |to, from| *to = from)
    })
}
