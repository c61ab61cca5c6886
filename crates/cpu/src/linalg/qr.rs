//! The kernel of `qr`.

use crate::linalg::matrix::inside;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{Bytes, Call, DType};

use super::field::Field;
use super::householder::{self, HouseholderWorkspace, workspace_bytes};
use super::matrix::{dims, for_batch};
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_real;
use crate::parallel::{cut, cut_bytes_of, for_each_item};
use crate::strided;
use crate::workers::{Single, Workers};

/// The kernel of [`QR`](tonnage_ops::linalg::qr::QR).
pub static QR: KernelDef = KernelDef {
    run: |k| with_real!("qr", k.inputs[0].dtype, T => kernel::<T>(k)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

fn slot(m: usize, n: usize, dtype: DType, threads: usize) -> usize {
    let k = m.min(n);
    cut_bytes_of(m * n, dtype) + cut_bytes_of(k, dtype) + workspace_bytes(m, n, dtype, threads)
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let most = call.inputs.first().and_then(|a| Some((a.shape.most()?, a.dtype)));
    let Some((sizes, dtype)) = most else { return Bytes::ZERO };
    match dims("qr", &sizes) {
        Ok((batch, m, n)) => for_batch(batch, threads, slot(m, n, dtype, inside(batch, threads))),
        Err(_) => Bytes::ZERO,
    }
}

fn kernel<T: Field>(k: &mut Kernel) -> Result<()> {
    let a = &k.inputs[0];
    let (batch, m, n) = dims("qr", &a.layout.sizes)?;
    let least = m.min(n);
    let [q, r] = &mut *k.outputs else {
        return Err(bad_argument("qr", "the kernel was lent no two outputs", "report this"));
    };
    if batch == 0 || least == 0 {
        return Ok(());
    }
    let each = slot(m, n, T::DTYPE, inside(batch, k.workers.threads()));
    let workers: &dyn Workers = if batch == 1 { k.workers } else { &Single(k.workers) };
    let matrices = q.slice::<T>().chunks_exact_mut(m * least);
    let items = matrices.zip(r.slice::<T>().chunks_exact_mut(least * n)).enumerate();
    for_each_item(k.workers, items, k.scratch, each, &|(number, (q, r)), mut slot| {
        let matrix = cut::<T>(&mut slot, m * n);
        let factors = cut::<T>(&mut slot, least);
        let mut workspace = HouseholderWorkspace::of(slot, m, n);
        strided::copy(&a.layout, a.slice::<T>(), number * m * n, matrix);
        factorize(matrix, n, factors, q, r, &mut workspace, workers)
    })
}

/// Q and R of a matrix, which is used up.
pub(super) fn factorize<T: Field>(
    matrix: &mut [T],
    n: usize,
    factors: &mut [T],
    q: &mut [T],
    r: &mut [T],
    workspace: &mut HouseholderWorkspace<T>,
    workers: &dyn Workers,
) -> Result<()> {
    householder::factorize(matrix, n, factors, workspace, workers)?;
    householder::orthogonal(matrix, n, factors, q, workspace, workers)?;
    for (i, (to, from)) in r.chunks_exact_mut(n).zip(matrix.chunks_exact(n)).enumerate() {
        let negative = from[i] < T::ZERO;
        to[..i].fill(T::ZERO);
        let pairs = to[i..].iter_mut().zip(&from[i..]);
        pairs.for_each(|(to, from)| *to = if negative { -*from } else { *from });
        // What Q's columns are multiplied by stands where the factors were.
        factors[i] = if negative { -T::ONE } else { T::ONE };
    }
    for row in q.chunks_exact_mut(factors.len()) {
        row.iter_mut().zip(&*factors).for_each(|(x, sign)| *x = *x * *sign);
    }
    Ok(())
}
