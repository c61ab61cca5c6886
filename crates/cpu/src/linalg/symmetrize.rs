//! The kernel of `symmetrize`.

use tonnage_core::error::Result;

use super::matrix::{dims, each_matrix};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Real, with_real};
use crate::parallel::strides;
use crate::workers::Workers;

/// The kernel of [`SYMMETRIZE`](tonnage_ops::linalg::symmetrize::SYMMETRIZE).
pub static SYMMETRIZE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (_, _, n) = dims("symmetrize", &k.outputs[0].sizes)?;
    with_real!("symmetrize", k.outputs[0].dtype, T => {
        let workers = k.workers;
        each_matrix::<T>("symmetrize", k, 0, &|_, matrix| {
            if lower(matrix, n, workers).is_err() {
                return; // as all other matrices do
            }
            for i in strides(workers, 0..n, n).flatten() {
                for j in 0..i {
                    matrix[j * n + i] = matrix[i * n + j];
                }
            }
        })
    })
}

/// Rows and columns of a square.
const SQUARE: usize = 32;

/// Puts the symmetric part into the lower triangle.
///
/// # Errors
/// Where the work is stopped.
pub(super) fn lower<T: Real>(matrix: &mut [T], n: usize, workers: &dyn Workers) -> Result<()> {
    // In squares, so that what is read down columns stays in cache.
    for rows in (0..n).step_by(SQUARE) {
        if rows > 0 {
            workers.check()?;
        }
        for columns in (0..=rows).step_by(SQUARE) {
            for i in rows..n.min(rows + SQUARE) {
                for j in columns..i.min(columns + SQUARE) {
                    matrix[i * n + j] = matrix[i * n + j] * T::HALF + matrix[j * n + i] * T::HALF;
                }
            }
        }
    }
    Ok(())
}
