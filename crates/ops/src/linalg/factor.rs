//! The one place where matrices are factorized and triangular systems are solved, in place, row by row.
//!
//! Written here rather than taken from a library because a kernel may not allocate: faer, the best there
//! is, keeps a buffer of twice the last-level cache for every thread that ever multiplied, out of any
//! ledger's sight. Rows are worked on in blocks: what a block needs of the finished rows is computed for
//! all its rows at once, on all threads; the small triangle within the block follows on one. Sums run in
//! an order that depends on the sizes alone.

use tonnage_core::Workers;
use tonnage_core::workers::for_each_chunk;

use crate::number::Real;
use crate::parallel::rows_at_once;

/// Rows of a block.
const BLOCK: usize = 48;
/// Partial sums of a dot product: two vectors of the widest kind.
const LANES: usize = 16;

/// Replaces the lower triangle of a symmetric matrix by its Cholesky factor; the upper one is not read
/// and not written. Gives the first column whose pivot is not above 0 (or not finite).
pub fn cholesky<T: Real>(
    matrix: &mut [T],
    n: usize,
    workers: &dyn Workers,
) -> std::result::Result<(), usize> {
    for start in (0..n).step_by(BLOCK) {
        let (done, rest) = matrix.split_at_mut(start * n);
        let count = BLOCK.min(n - start);
        let block = &mut rest[..count * n];
        let chunk = rows_at_once(start * start / 2).max(4) * n;
        for_each_chunk(workers, block, chunk, &|_, rows| {
            for j in 0..start {
                let finished = &done[j * n..=j * n + j];
                for row in rows.chunks_mut(n) {
                    row[j] = (row[j] - dot(&finished[..j], &row[..j])) / finished[j];
                }
            }
        });
        for i in 0..count {
            let (above, row) = block.split_at_mut(i * n);
            for j in 0..i {
                let (finished, column) = (&above[j * n..(j + 1) * n], start + j);
                row[column] =
                    (row[column] - dot(&finished[..column], &row[..column])) / finished[column];
            }
            let column = start + i;
            let pivot = row[column] - dot(&row[..column], &row[..column]);
            if !pivot.is_positive() {
                return Err(column);
            }
            row[column] = pivot.root();
        }
    }
    Ok(())
}

/// A triangular matrix as it is read: its lower triangle, or that one transposed.
#[derive(Clone, Copy)]
pub struct Triangle<'a, T> {
    /// The bytes that it lies in.
    pub data: &'a [T],
    /// Where its first element lies.
    pub start: usize,
    /// From row to row, and from column to column, of the lower triangle.
    pub steps: [isize; 2],
    /// Its order.
    pub n: usize,
    /// Solve with the transposed matrix.
    pub transposed: bool,
    /// The diagonal is not read: it is 1 everywhere.
    pub unit: bool,
}

impl<T: Real> Triangle<'_, T> {
    /// The element of the matrix that the system is solved with.
    fn at(&self, row: usize, column: usize) -> T {
        let (row, column) = if self.transposed { (column, row) } else { (row, column) };
        let step = row as isize * self.steps[0] + column as isize * self.steps[1];
        self.data[(self.start as isize + step) as usize]
    }

    /// The first column whose diagonal element is 0.
    pub fn singular(&self) -> Option<usize> {
        (0..self.n).find(|i| self.at(*i, *i) == T::ZERO)
    }

    /// Replaces `x`, `n` rows of `width` elements, by the solution of `triangle * solution = x`.
    pub fn solve(&self, x: &mut [T], width: usize, workers: &dyn Workers) {
        let blocks = self.n.div_ceil(BLOCK);
        for number in 0..blocks {
            // The transposed lower triangle is an upper one: from the last row up.
            let number = if self.transposed { blocks - 1 - number } else { number };
            let (start, end) = (number * BLOCK, self.n.min((number + 1) * BLOCK));
            let (above, rest) = x.split_at_mut(start * width);
            let (block, below) = rest.split_at_mut((end - start) * width);
            let (done, first) = if self.transposed { (below, end) } else { (above, 0) };
            let rows = rows_at_once(done.len()).max(4);
            for_each_chunk(workers, block, rows * width, &|chunk, part| {
                for (j, finished) in done.chunks(width).enumerate() {
                    for (i, row) in part.chunks_mut(width).enumerate() {
                        subtract(row, self.at(start + chunk * rows + i, first + j), finished);
                    }
                }
            });
            self.solve_block(block, start, width);
        }
    }

    fn solve_block(&self, block: &mut [T], start: usize, width: usize) {
        let count = block.len() / width;
        for step in 0..count {
            let i = if self.transposed { count - 1 - step } else { step };
            let (above, rest) = block.split_at_mut(i * width);
            let (row, below) = rest.split_at_mut(width);
            let (done, first) = if self.transposed { (below, i + 1) } else { (above, 0) };
            for (j, finished) in done.chunks(width).enumerate() {
                subtract(row, self.at(start + i, start + first + j), finished);
            }
            if !self.unit {
                let pivot = self.at(start + i, start + i);
                row.iter_mut().for_each(|x| *x = *x / pivot);
            }
        }
    }
}

fn subtract<T: Real>(row: &mut [T], factor: T, other: &[T]) {
    row.iter_mut().zip(other).for_each(|(x, y)| *x = *x - factor * *y);
}

fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let (wide_a, wide_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail = wide_a.remainder().iter().zip(wide_b.remainder());
    let mut lanes = [T::ZERO; LANES];
    for (a, b) in wide_a.zip(wide_b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane = *lane + *a * *b;
        }
    }
    let tail = tail.fold(T::ZERO, |sum, (a, b)| sum + *a * *b);
    lanes.into_iter().fold(tail, |sum, lane| sum + lane)
}
