//! The kernel of `half_tril`.

use tonnage_core::error::Result;

use super::matrix::{dims, each_matrix};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, Real, with_real};
use crate::parallel::strides;

/// The kernel of [`HALF_TRIL`](tonnage_ops::linalg::half_tril::HALF_TRIL).
pub static HALF_TRIL: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (_, _, n) = dims("half_tril", &k.outputs[0].sizes)?;
    with_real!("half_tril", k.outputs[0].dtype, T => {
        let workers = k.workers;
        each_matrix::<T>("half_tril", k, 0, &|_, matrix| {
            for i in strides(workers, 0..n, n).flatten() {
                let row = &mut matrix[i * n..(i + 1) * n];
                row[i] *= T::HALF;
                row[i + 1..].fill(T::ZERO);
            }
        })
    })
}
