//! Cholesky factorizations, in place.
//!
//! Written here rather than taken from a library because a kernel may not allocate: faer, the best there
//! is, keeps a buffer of twice the last-level cache for every thread that ever multiplied, out of any
//! ledger's sight. A block on the diagonal is factorized on its own, the rows below are solved for, and the rest of the
//! lower triangle is updated by products, which the matmul core runs on all threads.

use tonnage_core::{DType, Result};
use tonnage_ops::linalg::Size;

use super::field::{Field, dot_in};
use super::gemm::{Matrix, Strides};
use super::small::{self, SMALL};
use super::substitute::{BLOCK, BlockWorkspace, Triangle, apart, workspace_bytes};
use crate::number::Real;
use crate::workers::Workers;
use tonnage_simd::{Isa, SimdKernel, level};

/// Columns of the triangle that are updated at once: few, for as many above the diagonal are written in vain.
const CHUNK: usize = 128;

/// Elements that a factorization wants held: a block of columns below the diagonal, and a chunk of it less than 0.
pub fn held(n: usize) -> usize {
    if n > BLOCK { BLOCK * (apart(n - BLOCK) + CHUNK) } else { 0 }
}

/// Bytes of the workspace for a matrix.
pub fn bytes(n: usize, dtype: DType, threads: usize) -> usize {
    workspace_bytes(n, CHUNK, held(n), dtype, threads)
}

/// Replaces the lower triangle of a symmetric matrix by its Cholesky factor; the upper one is not read, and left with
/// anything. Gives the first column whose pivot is not above 0 (or not finite).
pub fn cholesky<T: Field + Real>(
    matrix: &mut [T],
    n: usize,
    workspace: &mut BlockWorkspace<T>,
    workers: &dyn Workers,
) -> Result<Option<usize>> {
    if n <= SMALL {
        return Ok(small::cholesky(matrix, n));
    }
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        let count = end - start;
        if let Some(column) = level().run(Diagonal { matrix, n, start, count }) {
            return Ok(Some(column));
        }
        if end == n {
            break;
        }
        let (above, below) = matrix.split_at_mut(end * n);
        let first = start * n + start;
        let steps = [n as isize, 1];
        let data = &*above;
        workspace.load(
            &Triangle { data, start: first, steps, n: count, transposed: false, unit: false },
            0,
            count,
        );
        // The columns below, one after the other; solved for, and put back.
        let (len, stride) = (n - end, apart(n - BLOCK));
        let held = std::mem::take(&mut workspace.held);
        let (panel, negative) = held.split_at_mut(BLOCK * stride);
        for (i, row) in below.chunks_exact(n).enumerate() {
            for (j, x) in row[start..end].iter().enumerate() {
                panel[j * stride + i] = *x;
            }
        }
        workspace.substitute(panel, count, [len, stride], false);
        for (i, row) in below.chunks_exact_mut(n).enumerate() {
            for (j, x) in row[start..end].iter_mut().enumerate() {
                *x = panel[j * stride + i];
            }
        }
        for from in (0..len).step_by(CHUNK) {
            let width = CHUNK.min(len - from);
            for (to, column) in negative.chunks_exact_mut(width).zip(panel.chunks_exact(stride)) {
                to.iter_mut().zip(&column[from..]).for_each(|(to, x)| *to = -*x);
            }
            let size = Size::single(len - from, width, count);
            let left = Strides { start: from, batch: 0, row: 1, col: stride as isize };
            let left = Matrix::left(&*panel, left);
            let right = Matrix::right(&*negative, Strides::rows_of(width));
            let into = (&mut below[from * n + end + from..], n);
            workspace.add(size, left, right, into, workers)?;
        }
        workspace.held = held;
    }
    Ok(None)
}

/// The block on the diagonal.
struct Diagonal<'a, T> {
    matrix: &'a mut [T],
    n: usize,
    start: usize,
    count: usize,
}

impl<T: Field + Real> SimdKernel for Diagonal<'_, T> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Option<usize> {
        let Diagonal { matrix, n, start, count } = self;
        let block = &mut matrix[start * n..];
        for i in 0..count {
            let (above, row) = block.split_at_mut(i * n);
            let row = &mut row[start..start + i + 1];
            for (j, finished) in above.chunks_exact(n).enumerate() {
                let finished = &finished[start..=start + j];
                row[j] = (row[j] - dot_in::<I, T>(&finished[..j], &row[..j])) / finished[j];
            }
            let pivot = row[i] - dot_in::<I, T>(&row[..i], &row[..i]);
            if !pivot.is_positive() {
                return Some(start + i);
            }
            row[i] = pivot.root();
        }
        None
    }
}
