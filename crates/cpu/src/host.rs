//! The kernel of the ops that call the program around: it runs their closure on what it is lent.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};

use crate::kernel::{Kernel, KernelDef, no_scratch};

/// The kernel of `print`, `assertion`, `host_callback` and `pure_callback`.
pub static HOST: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    match k.attrs {
        Attrs::Host { call, .. } => call.run(k.inputs, k.outputs),
        _ => Err(bad_argument("host", "no closure", "give one")),
    }
}
