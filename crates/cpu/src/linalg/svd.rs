//! The kernel of `svd`, by a QR factorization and rotations of the rows of R, which are exact for small values too;
//! those of a large R are first multiplied by eigenvectors (`gram`). It works in scratch of its own for each thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::linalg::matrix::inside;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{Bytes, Call, DType};
use tonnage_ops::linalg::Size;

use super::eigh::refuse;
use super::field::{Field, add_in, dot, largest, length};
use super::gemm::{Matrix, NoEpilogue, Strides, Target, gemm, scratch_bytes_within};
use super::gram::{self, Spare};
use super::householder::{HouseholderWorkspace, workspace_bytes};
use super::jacobi::{orthogonalize, refine};
use super::matrix::{dims, for_batch};
use super::qr;
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_real;
use crate::parallel::{cut, cut_bytes, cut_bytes_of, for_each_item};
use crate::strided;
use crate::workers::{Single, Workers};
use tonnage_simd::Plain;

/// The kernel of [`SVD`](tonnage_ops::linalg::svd::SVD).
pub static SVD: KernelDef = KernelDef {
    run: |k| with_real!("svd", k.inputs[0].dtype, T => kernel::<T>(k)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

/// Rows of a matrix that is not wide, and its columns.
fn tall_shape(m: usize, n: usize) -> (usize, usize) {
    (m.max(n), m.min(n))
}

fn slot(m: usize, n: usize, dtype: DType, threads: usize) -> usize {
    let (p, q) = tall_shape(m, n);
    // The matrix and Q; R; rows that are rotated; factors and lengths.
    let counts = [p * q, p * q, q * q, 2 * q * q, q, q];
    let elements: usize = counts.map(|count| cut_bytes_of(count, dtype)).iter().sum();
    let packing = scratch_bytes_within(Size::single(p, q, q), dtype, threads).as_usize();
    elements
        + cut_bytes::<u32>(q)
        + gram::bytes(q, dtype)
        + workspace_bytes(p, q, dtype, threads).max(packing.next_multiple_of(64))
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let most = call.inputs.first().and_then(|a| Some((a.shape.most()?, a.dtype)));
    let Some((sizes, dtype)) = most else { return Bytes::ZERO };
    match dims("svd", &sizes) {
        Ok((batch, m, n)) => for_batch(batch, threads, slot(m, n, dtype, inside(batch, threads))),
        Err(_) => Bytes::ZERO,
    }
}

fn kernel<T: Field>(k: &mut Kernel) -> Result<()> {
    let a = &k.inputs[0];
    let (batch, m, n) = dims("svd", &a.layout.sizes)?;
    let least = m.min(n);
    let [u, s, v] = &mut *k.outputs else {
        return Err(bad_argument("svd", "the kernel was lent no three outputs", "report this"));
    };
    if batch == 0 || least == 0 {
        return Ok(());
    }
    let each = slot(m, n, T::DTYPE, inside(batch, k.workers.threads()));
    let workers: &dyn Workers = if batch == 1 { k.workers } else { &Single(k.workers) };
    let failed = AtomicU64::new(u64::MAX);
    let sides = u.slice::<T>().chunks_exact_mut(m * least);
    let sides = sides.zip(v.slice::<T>().chunks_exact_mut(n * least));
    let items = sides.zip(s.slice::<T>().chunks_exact_mut(least)).enumerate();
    for_each_item(k.workers, items, k.scratch, each, &|(number, ((u, v), s)), mut slot| {
        let matrix = cut::<T>(&mut slot, m * n);
        let other = cut::<T>(&mut slot, m * n);
        strided::copy(&a.layout, a.slice::<T>(), number * m * n, other);
        let most = largest(other);
        if most.is_infinite() {
            failed.fetch_min((number as u64) << 32, Ordering::Relaxed);
            return Ok(());
        }
        // Brought near 1 by a power of 2, so that no product over- or underflows; a wide matrix is transposed.
        let scale = if most > 0.0 { most.log2().floor().exp2() } else { 1.0 };
        for (i, x) in other.iter().enumerate() {
            let at = if m < n { i % n * m + i / n } else { i };
            matrix[at] = T::of(x.wide() / scale);
        }
        let (long, short) = if m < n { (&mut *v, &mut *u) } else { (&mut *u, &mut *v) };
        if !decompose(matrix, other, (long, &mut *s, short), slot, workers)? {
            failed.fetch_min((number as u64) << 32, Ordering::Relaxed);
        }
        s.iter_mut().for_each(|s| *s = T::of(s.wide() * scale));
        fix_signs(u, v, least, &mut matrix[..least]);
        Ok(())
    })?;
    refuse("svd", failed.into_inner())
}

/// The sign convention: negates columns of both sides where the element of largest magnitude of the left one, the first of
/// these, is negative.
fn fix_signs<T: Field>(u: &mut [T], v: &mut [T], k: usize, signs: &mut [T]) {
    super::eigh::fix_column_signs(u, k, signs);
    for row in v.chunks_exact_mut(k) {
        row.iter_mut().zip(&*signs).for_each(|(x, sign)| *x = *x * *sign);
    }
}

/// Rows of lengths further apart than this are rotated alone, which is exact for the short ones too.
const GRADED: f64 = 4096.0;

/// One matrix that is not wide: the vectors of its longer side, its values, the vectors of its shorter side. False where
/// it does not converge.
fn decompose<T: Field>(
    matrix: &mut [T],
    q: &mut [T],
    (long, values, short): (&mut [T], &mut [T], &mut [T]),
    mut scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<bool> {
    let n = values.len();
    let m = matrix.len() / n;
    let r = cut::<T>(&mut scratch, n * n);
    let rows = cut::<T>(&mut scratch, 2 * n * n);
    let [factors, lengths] = [(); 2].map(|()| cut::<T>(&mut scratch, n));
    let order = cut::<u32>(&mut scratch, n);
    qr::factorize(
        matrix,
        n,
        factors,
        q,
        r,
        &mut HouseholderWorkspace::of(&mut *scratch, m, n),
        workers,
    )?;
    // Rows that rounding alone may have left: they are not rotated, and their directions are made up.
    let lengths_of_r = || r.chunks_exact(n).map(length);
    let longest = lengths_of_r().fold(0.0, f64::max);
    let least = T::STEP * longest;
    // A large R is preconditioned first, unless its rows are of such different lengths that this would blur the short ones.
    // What is worked out on the way lies where results will.
    let spare = Spare {
        products: &mut matrix[..n * n],
        reflections: &mut *short,
        rotation: &mut long[..n * n],
        order: &mut *order,
    };
    let even = lengths_of_r().all(|length| length <= least || length >= longest / GRADED);
    let preconditioned =
        even && n >= gram::LEAST && gram::precondition(r, n, rows, spare, &mut *scratch, workers)?;
    let ended = if preconditioned {
        refine(rows, n, 2 * n, least, matrix, (&mut *scratch, workers))?
    } else {
        // Beside each row of R one of the unit matrix: what R was multiplied by in the end.
        for (i, (row, from)) in rows.chunks_exact_mut(2 * n).zip(r.chunks_exact(n)).enumerate() {
            row[..n].copy_from_slice(from);
            row[n..].fill(T::ZERO);
            row[n + i] = T::ONE;
        }
        orthogonalize(rows, n, 2 * n, least, workers)?
    };
    for (to, row) in lengths.iter_mut().zip(rows.chunks_exact(2 * n)) {
        *to = T::of(length(&row[..n]));
    }
    order.iter_mut().enumerate().for_each(|(i, to)| *to = i as u32);
    order.sort_unstable_by(|a, b| {
        let of = |i: &u32| lengths[*i as usize].wide();
        of(b).total_cmp(&of(a)).then(a.cmp(b))
    });
    normalize(rows, lengths, order, least, r);
    for (to, from) in values.iter_mut().zip(&*order) {
        *to = lengths[*from as usize];
    }
    for (i, row) in short.chunks_exact_mut(n).enumerate() {
        for (to, from) in row.iter_mut().zip(&*order) {
            *to = rows[*from as usize * 2 * n + i];
        }
    }
    // R = Gᵀ S Vᵀ, so Q Gᵀ: a row of G, in order, for each column.
    for (to, from) in r.chunks_exact_mut(n).zip(&*order) {
        to.copy_from_slice(&rows[*from as usize * 2 * n + n..][..n]);
    }
    let size = Size::single(m, n, n);
    let left = Matrix::left(q, Strides::rows_of(n));
    let right = Matrix::right(r, Strides::rows_of(n).transposed());
    gemm(size, &left, &right, Target::new(long, size), &NoEpilogue, scratch, workers)?;
    Ok(ended)
}

/// Brings rows to a length of 1. Those of no length to speak of become any that are orthogonal to the rest.
fn normalize<T: Field>(rows: &mut [T], lengths: &[T], order: &[u32], least: f64, work: &mut [T]) {
    let n = lengths.len();
    for (done, number) in order.iter().enumerate() {
        let at = *number as usize * 2 * n;
        let own = lengths[*number as usize];
        if own.wide() > least {
            rows[at..at + n].iter_mut().for_each(|x| *x = *x / own);
            continue;
        }
        // The axis that the rows that are done say least about, less what they say of it, twice.
        let of = |i: usize| order[i] as usize * 2 * n;
        let said =
            |axis: usize| -> f64 { (0..done).map(|i| rows[of(i) + axis].wide().powi(2)).sum() };
        let least = (0..n).map(|axis| (said(axis), axis)).min_by(|a, b| a.0.total_cmp(&b.0));
        let made = &mut work[..n];
        made.fill(T::ZERO);
        made[least.map_or(0, |(_, axis)| axis)] = T::ONE;
        for _ in 0..2 {
            for i in 0..done {
                let other = &rows[of(i)..of(i) + n];
                let common = dot(made, other);
                add_in::<Plain, T>(made, -common, other);
            }
        }
        let size = T::of(length(made));
        rows[at..at + n].iter_mut().zip(&*made).for_each(|(to, x)| *to = *x / size);
    }
}
