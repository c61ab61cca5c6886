//! The kernel of `assign_rows`.

use tonnage_core::error::Result;

use crate::index::rows::scatter;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;

/// The kernel of [`ASSIGN_ROWS`](tonnage_ops::state::assign_rows::ASSIGN_ROWS).
pub static ASSIGN_ROWS: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_width!(k.outputs[0].dtype, T => {
        scatter::<T>("assign_rows", k, |to, from| *to = from)
    })
}
