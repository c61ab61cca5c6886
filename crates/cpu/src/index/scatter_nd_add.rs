//! The kernel of `scatter_nd_add`.

use super::nd;
use crate::kernel::{KernelDef, no_scratch};
use crate::number::{Number, with_sum};

/// The kernel of [`SCATTER_ND_ADD`](tonnage_ops::index::scatter_nd_add::SCATTER_ND_ADD).
pub static SCATTER_ND_ADD: KernelDef = KernelDef {
    run: |k| {
        with_sum!("scatter_nd_add", k.outputs[0].dtype, T => {
            nd::scatter::<T>("scatter_nd_add", k, |to, from| *to = to.plus(from))
        })
    },
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};
