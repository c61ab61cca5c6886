//! The kernel of `scatter_nd_update`.

use super::nd;
use crate::kernel::{KernelDef, no_scratch};
use crate::number::with_width;

/// The kernel of [`SCATTER_ND_UPDATE`](tonnage_ops::index::scatter_nd_update::SCATTER_ND_UPDATE).
pub static SCATTER_ND_UPDATE: KernelDef = KernelDef {
    run: |k| {
        with_width!(k.outputs[0].dtype, T => {
            nd::scatter::<T>("scatter_nd_update", k, |to, from| *to = from)
        })
    },
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};
