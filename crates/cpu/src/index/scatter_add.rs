//! The kernel of `scatter_add`: 16-bit floats are added in f32 and rounded at each addition. All indices are checked
//! before anything is written.

use tonnage_core::error::Result;

use super::rows::scatter;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, with_sum};

/// The kernel of [`SCATTER_ADD`](tonnage_ops::index::scatter_add::SCATTER_ADD).
pub static SCATTER_ADD: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_sum!("scatter_add", k.outputs[0].dtype, T => {
        scatter::<T>("scatter_add", k, |to, from| *to = to.plus(from))
    })
}
