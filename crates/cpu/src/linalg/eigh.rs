//! The kernel of `eigh`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::linalg::matrix::inside;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::{Bytes, Call, DType};

use super::field::{Field, largest};
use super::householder::{HouseholderWorkspace, workspace_bytes};
use super::matrix::{dims, for_batch};
use super::sweeps::{self, Rotation, STRIP};
use super::tridiagonal;
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_real;
use crate::parallel::{cut, cut_bytes, cut_bytes_of, for_each_item};
use crate::strided;
use crate::workers::{Single, Workers};

/// The kernel of [`EIGH`](tonnage_ops::linalg::eigh::EIGH).
pub static EIGH: KernelDef = KernelDef {
    run: |k| with_real!("eigh", k.inputs[0].dtype, T => kernel::<T>(k)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

fn slot(n: usize, dtype: DType, threads: usize) -> usize {
    let strips = n.div_ceil(STRIP) * STRIP * n;
    // The matrix, the vectors of reflections, the rotated rows; factors and a row; in f64 two diagonals.
    let elements: usize =
        [n * n, n * n, strips, n, n].map(|count| cut_bytes_of(count, dtype)).iter().sum();
    elements
        + 2 * cut_bytes::<f64>(n)
        + cut_bytes_of(2 * sweeps::rotations(n), dtype)
        + cut_bytes::<u32>(n)
        + workspace_bytes(n, n, dtype, threads)
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let most = call.inputs.first().and_then(|a| Some((a.shape.most()?, a.dtype)));
    let Some((sizes, dtype)) = most else { return Bytes::ZERO };
    match dims("eigh", &sizes) {
        Ok((batch, n, _)) => for_batch(batch, threads, slot(n, dtype, inside(batch, threads))),
        Err(_) => Bytes::ZERO,
    }
}

fn kernel<T: Field>(k: &mut Kernel) -> Result<()> {
    let a = &k.inputs[0];
    let (batch, n, _) = dims("eigh", &a.layout.sizes)?;
    let [values, vectors] = &mut *k.outputs else {
        return Err(bad_argument("eigh", "the kernel was lent no two outputs", "report this"));
    };
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let each = slot(n, T::DTYPE, inside(batch, k.workers.threads()));
    let workers: &dyn Workers = if batch == 1 { k.workers } else { &Single(k.workers) };
    // The first matrix that fails: the same at any number of threads.
    let failed = AtomicU64::new(u64::MAX);
    let matrices = vectors.slice::<T>().chunks_exact_mut(n * n);
    let items = values.slice::<T>().chunks_exact_mut(n).zip(matrices).enumerate();
    for_each_item(k.workers, items, k.scratch, each, &|(number, (values, vectors)), mut slot| {
        let matrix = cut::<T>(&mut slot, n * n);
        strided::copy(&a.layout, a.slice::<T>(), number * n * n, matrix);
        if let Some(column) = decompose(matrix, n, values, vectors, slot, workers)? {
            failed.fetch_min((number as u64) << 32 | column as u64, Ordering::Relaxed);
        }
        Ok(())
    })?;
    refuse("eigh", failed.into_inner())
}

/// The error of the first matrix that failed, if one did.
pub(super) fn refuse(op: &'static str, failed: u64) -> Result<()> {
    if failed == u64::MAX {
        return Ok(());
    }
    let (matrix, column) = ((failed >> 32) as usize, failed as u32 as usize);
    let help = "look for NaN or an infinity in it, and check what made it".into();
    Err(ErrorKind::Singular { op, matrix, column, needed: "finite", help }.into())
}

/// One matrix; a column where it showed that there is no answer.
fn decompose<T: Field>(
    matrix: &mut [T],
    n: usize,
    values: &mut [T],
    vectors: &mut [T],
    mut scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<Option<usize>> {
    if let Some(row) = matrix.chunks_exact(n).position(|row| largest(row).is_infinite()) {
        return Ok(Some(row));
    }
    let half = T::of(0.5);
    for i in 0..n {
        for j in 0..i {
            let mean = matrix[i * n + j] * half + matrix[j * n + i] * half;
            matrix[i * n + j] = mean;
            matrix[j * n + i] = mean;
        }
    }
    let reflections = cut::<T>(&mut scratch, n * n);
    let strips = cut::<T>(&mut scratch, n.div_ceil(STRIP) * STRIP * n);
    let factors = cut::<T>(&mut scratch, n);
    let work = cut::<T>(&mut scratch, n);
    let (d, e) = (cut::<f64>(&mut scratch, n), cut::<f64>(&mut scratch, n));
    let rotations = cut::<Rotation<T>>(&mut scratch, sweeps::rotations(n));
    let order = cut::<u32>(&mut scratch, n);
    let mut workspace = HouseholderWorkspace::of(scratch, n, n);
    let diagonals = (&mut *d, &mut *e);
    tridiagonal::reduce(matrix, n, reflections, factors, diagonals, &mut workspace, workers)?;
    // The product of the reflections is what is rotated, not a unit matrix: that would be full of numbers that are next
    // to nothing, with which machines are slow.
    tridiagonal::orthogonal(reflections, factors, vectors, n, &mut workspace, workers)?;
    sweeps::into_strips(vectors, n, strips);
    if let Some(column) = sweeps::rotate(d, e, strips, rotations, workers)? {
        return Ok(Some(column));
    }
    order.iter_mut().enumerate().for_each(|(i, to)| *to = i as u32);
    order.sort_unstable_by(|a, b| d[*a as usize].total_cmp(&d[*b as usize]).then(a.cmp(b)));
    for (to, from) in values.iter_mut().zip(&*order) {
        *to = T::of(d[*from as usize]);
    }
    // A row of the rotated matrix is a vector: they become columns, in order.
    for (i, row) in vectors.chunks_exact_mut(n).enumerate() {
        let strip = &strips[i / STRIP * STRIP * n..];
        for (to, from) in row.iter_mut().zip(&*order) {
            *to = strip[*from as usize * STRIP + i % STRIP];
        }
    }
    fix_column_signs(vectors, n, work);
    Ok(None)
}

/// The sign convention: negates columns whose element of largest magnitude, the first of these, is negative. `work` has
/// room for a row. Leaves the factor of each column, -1 or 1, in `work`.
pub(super) fn fix_column_signs<T: Field>(matrix: &mut [T], n: usize, work: &mut [T]) {
    let best = &mut work[..n];
    best.fill(T::ZERO);
    for row in matrix.chunks_exact(n) {
        for (best, x) in best.iter_mut().zip(row) {
            *best = if x.wide().abs() > best.wide().abs() { *x } else { *best };
        }
    }
    best.iter_mut().for_each(|best| *best = if *best < T::ZERO { -T::ONE } else { T::ONE });
    for row in matrix.chunks_exact_mut(n) {
        row.iter_mut().zip(&*best).for_each(|(x, sign)| *x = *x * *sign);
    }
}
