//! The kernel of `assign_add_rows`.

use tonnage_core::error::Result;

use crate::index::rows::scatter;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, with_sum};

/// The kernel of [`ASSIGN_ADD_ROWS`](tonnage_ops::state::assign_add_rows::ASSIGN_ADD_ROWS).
pub static ASSIGN_ADD_ROWS: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_sum!("assign_add_rows", k.outputs[0].dtype, T => {
        scatter::<T>("assign_add_rows", k, |to, from| *to = to.plus(from))
    })
}
