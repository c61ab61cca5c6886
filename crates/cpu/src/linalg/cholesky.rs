//! The kernel of `cholesky`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::linalg::matrix::inside;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::lent::Data;
use tonnage_core::{Bytes, Call};

use super::field::Field;
use super::gemm::Compute;
use super::matrix::{dims, each_in_slot, for_batch};
use super::substitute::BlockWorkspace;
use super::{factor, symmetrize};
use crate::kernel::{Kernel, KernelDef};
use crate::number::{Real, with_real};
use crate::strided;

/// The kernel of [`CHOLESKY`](tonnage_ops::linalg::cholesky::CHOLESKY).
pub static CHOLESKY: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

fn scratch(call: &Call, threads: usize) -> Bytes {
    let most = call.inputs.first().and_then(|a| Some((a.shape.most()?, a.dtype)));
    let Some((sizes, dtype)) = most else { return Bytes::ZERO };
    match dims("cholesky", &sizes) {
        Ok((batch, n, _)) => {
            for_batch(batch, threads, factor::bytes(n, dtype, inside(batch, threads)))
        }
        Err(_) => Bytes::ZERO,
    }
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_real!("cholesky", k.outputs[0].dtype, T => factorize::<T>(k))
}

fn factorize<T: Field + Real>(k: &mut Kernel) -> Result<()> {
    let (batch, n, _) = dims("cholesky", &k.outputs[0].sizes)?;
    let (a, workers) = (&k.inputs[0], k.workers);
    let given = matches!(a.data, Data::Slice(_));
    // The first matrix that fails, and its column: the same at any number of threads.
    let failed = AtomicU64::new(u64::MAX);
    let each = factor::bytes(n, T::DTYPE, inside(batch, workers.threads()));
    let out = (k.outputs[0].slice::<T>(), n * n, n * n);
    each_in_slot(out, (&mut *k.scratch, each), workers, &|number, matrix, slot, workers| {
        if given {
            strided::copy(&a.layout, a.slice::<T>(), number * n * n, matrix);
        }
        symmetrize::lower(matrix, n, workers)?;
        let mut workspace = BlockWorkspace::of(slot, n, factor::held(n));
        match factor::cholesky(matrix, n, &mut workspace, workers)? {
            None => {
                let rows = matrix.chunks_mut(n).enumerate();
                rows.for_each(|(i, row)| row[i + 1..].fill(<T as Compute>::ZERO));
            }
            Some(column) => {
                failed.fetch_min((number * n + column) as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    match failed.into_inner() {
        u64::MAX => Ok(()),
        at => Err(ErrorKind::Singular {
            op: "cholesky",
            matrix: at as usize / n,
            column: at as usize % n,
            needed: "positive definite",
            help: "add a small number to the diagonal, or check what made it".into(),
        }
        .into()),
    }
}
