//! The kernel of `scatter_nd_min`.

use super::nd;
use crate::kernel::{KernelDef, no_scratch};
use crate::number::{Number, with_number};

/// The kernel of [`SCATTER_ND_MIN`](tonnage_ops::index::scatter_nd_min::SCATTER_ND_MIN).
pub static SCATTER_ND_MIN: KernelDef = KernelDef {
    run: |k| {
        with_number!("scatter_nd_min", k.outputs[0].dtype, T => {
            nd::scatter::<T>("scatter_nd_min", k, |to, from| {
                if from.below(*to) {
                    *to = from;
                }
            })
        })
    },
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};
