//! The kernel of `gather_nd`.

use super::nd;
use crate::kernel::{KernelDef, no_scratch};
use crate::number::with_width;

/// The kernel of [`GATHER_ND`](tonnage_ops::index::gather_nd::GATHER_ND).
pub static GATHER_ND: KernelDef = KernelDef {
    run: |k| with_width!(k.inputs[0].dtype, T => nd::gather::<T>("gather_nd", k)),
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};
