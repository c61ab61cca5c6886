//! The kernel of `rows_to_dense`.

use tonnage_core::error::Result;

use super::rows::put_rows;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, with_sum};

/// The kernel of [`ROWS_TO_DENSE`](tonnage_ops::index::rows_to_dense::ROWS_TO_DENSE).
pub static ROWS_TO_DENSE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (indices, rows, out) = (&k.inputs[0], &k.inputs[1], &mut k.outputs[0]);
    with_sum!("rows_to_dense", out.dtype, T => {
        let zero = |_: usize, piece: &mut [T]| piece.fill(bytemuck::Zeroable::zeroed());
        let add = |to: &mut T, from: T| *to = to.plus(from);
        put_rows::<T>("rows_to_dense", 0, [indices, rows], out, k.workers, zero, add)
    })
}
