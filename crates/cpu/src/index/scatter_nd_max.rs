//! The kernel of `scatter_nd_max`.

use super::nd;
use crate::kernel::{KernelDef, no_scratch};
use crate::number::{Number, with_number};

/// The kernel of [`SCATTER_ND_MAX`](tonnage_ops::index::scatter_nd_max::SCATTER_ND_MAX).
pub static SCATTER_ND_MAX: KernelDef = KernelDef {
    run: |k| {
        with_number!("scatter_nd_max", k.outputs[0].dtype, T => {
            nd::scatter::<T>("scatter_nd_max", k, |to, from| {
                if from.above(*to) {
                    *to = from;
                }
            })
        })
    },
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};
