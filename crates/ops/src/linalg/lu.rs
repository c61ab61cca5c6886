//! LU factorization with row exchanges, in place: what `solve`, `det` and `slogdet` share.
//!
//! A block of columns is factorized on its own, then the rows to the right of it are solved for, and the rest is
//! updated by their product, four rows at a time with sums in registers, on all threads. The order of every sum
//! depends on the sizes alone. Written here for the reasons that `factor` gives.

use tonnage_core::workers::for_each_chunk;
use tonnage_core::{FromScalar, Workers};

use crate::number::Real;
use crate::parallel::rows_at_once;
use crate::simd::number::Number;
use crate::simd::{Isa, Kernel, level};

/// Columns of a block.
const BLOCK: usize = 48;
/// Rows whose sums are kept in registers.
const ROWS: usize = 4;
/// Columns of those sums.
const COLUMNS: usize = 32;

/// An element that is factorized.
pub trait Factor: Real + Number + FromScalar {}
impl Factor for f64 {}
impl Factor for f32 {}

/// What came of a factorization.
pub struct Factored {
    /// Whether an odd number of rows were exchanged.
    pub odd: bool,
    /// The first column without a pivot, where there is one: the matrix is singular.
    pub singular: Option<usize>,
}

/// Replaces a matrix by its factors: L below the diagonal, whose own diagonal is 1, and U from it on. `pivots[i]` is
/// the row that row `i` was exchanged with.
pub fn factorize<T: Factor>(
    matrix: &mut [T],
    n: usize,
    pivots: &mut [u32],
    workers: &dyn Workers,
) -> Factored {
    let mut made = Factored { odd: false, singular: None };
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        panel(matrix, n, start, end, pivots, &mut made);
        if end == n {
            break;
        }
        let (above, below) = matrix.split_at_mut(end * n);
        let block = &mut above[start * n..];
        solve_unit(block, n, start, end);
        let block: &[T] = block;
        let at_once = (rows_at_once((end - start) * (n - end)) * ROWS).max(ROWS);
        for_each_chunk(workers, below, at_once * n, &|_, rows| {
            level().run(Update { rows, block, n, start, end });
        });
    }
    made
}

/// Factorizes the columns `start..end`, all rows from `start` on.
fn panel<T: Factor>(
    matrix: &mut [T],
    n: usize,
    start: usize,
    end: usize,
    pivots: &mut [u32],
    made: &mut Factored,
) {
    for column in start..end {
        let size = |row: usize| Number::abs(matrix[row * n + column]);
        let mut best = column;
        for row in column + 1..n {
            // NaN is taken too, so that it shows in the result.
            if size(row) > size(best) || Number::is_nan(size(row)) {
                best = row;
            }
        }
        pivots[column] = best as u32;
        if best != column {
            let (above, below) = matrix.split_at_mut(best * n);
            above[column * n..(column + 1) * n].swap_with_slice(&mut below[..n]);
            made.odd = !made.odd;
        }
        let (above, below) = matrix.split_at_mut((column + 1) * n);
        let pivot_row = &above[column * n..];
        let pivot = pivot_row[column];
        if pivot == <T as Number>::ZERO {
            made.singular.get_or_insert(column);
            continue;
        }
        for row in below.chunks_mut(n) {
            let factor = row[column] / pivot;
            row[column] = factor;
            for j in column + 1..end {
                row[j] = row[j] - factor * pivot_row[j];
            }
        }
    }
}

/// Solves for the rows of a block to the right of it: with L of the block, whose diagonal is 1.
fn solve_unit<T: Factor>(block: &mut [T], n: usize, start: usize, end: usize) {
    for i in 1..end - start {
        let (above, row) = block.split_at_mut(i * n);
        for j in 0..i {
            let factor = row[start + j];
            let done = &above[j * n + end..(j + 1) * n];
            for (x, y) in row[end..n].iter_mut().zip(done) {
                *x = *x - factor * *y;
            }
        }
    }
}

/// Takes from rows, right of the block, their factors in the block times the block's rows.
struct Update<'a, T> {
    rows: &'a mut [T],
    block: &'a [T],
    n: usize,
    start: usize,
    end: usize,
}

impl<T: Factor> Kernel for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Update { rows, block, n, start, end } = self;
        for group in rows.chunks_mut(ROWS * n) {
            let count = group.len() / n;
            for from in (end..n).step_by(COLUMNS) {
                let width = COLUMNS.min(n - from);
                let mut sums = [[<T as Number>::ZERO; COLUMNS]; ROWS];
                for (sums, row) in sums.iter_mut().zip(group.chunks(n)) {
                    sums[..width].copy_from_slice(&row[from..from + width]);
                }
                for j in 0..end - start {
                    let mut line = [<T as Number>::ZERO; COLUMNS];
                    line[..width].copy_from_slice(&block[j * n + from..j * n + from + width]);
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let factor = group[r.min(count - 1) * n + start + j].neg();
                        for (sum, x) in sums.iter_mut().zip(&line) {
                            *sum = factor.mul_add::<I>(*x, *sum);
                        }
                    }
                }
                for (sums, row) in sums.iter().zip(group.chunks_mut(n)) {
                    row[from..from + width].copy_from_slice(&sums[..width]);
                }
            }
        }
    }
}

/// Exchanges rows of `width` elements as a factorization did, or back.
pub fn exchange<T: Copy>(rows: &mut [T], width: usize, pivots: &[u32], back: bool) {
    let mut swap = |i: usize, with: usize| {
        if i != with {
            let (above, below) = rows.split_at_mut(with * width);
            above[i * width..(i + 1) * width].swap_with_slice(&mut below[..width]);
        }
    };
    match back {
        false => pivots.iter().enumerate().for_each(|(i, with)| swap(i, *with as usize)),
        true => pivots.iter().enumerate().rev().for_each(|(i, with)| swap(i, *with as usize)),
    }
}
