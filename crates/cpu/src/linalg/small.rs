//! Matrices of a few rows: factorized and solved with where blocks would cost more than they save.
//!
//! Rows are arrays of a length that the compiler knows, a vector or two each. Nothing is packed, and there is no workspace to be
//! lent. Elements of a row past the matrix are whatever was there: no other column reads them.

use super::field::Field;
use super::gemm::Strides;
use super::lu::{Factor, Factored};
use super::substitute::Triangle;
use crate::number::Real;
use tonnage_simd::{Isa, SimdKernel, level};

/// The largest order of such a matrix.
pub const SMALL: usize = 32;

/// Elements of which all lengths of rows are multiples.
const PART: usize = 8;

/// Runs a kernel whose rows are the shortest that hold `$n` elements.
macro_rules! in_rows {
    ($n:expr, $kernel:expr) => {
        match $n {
            0..=8 => level().run(InRows::<_, 8>($kernel)),
            9..=16 => level().run(InRows::<_, 16>($kernel)),
            _ => level().run(InRows::<_, SMALL>($kernel)),
        }
    };
}

/// A kernel in rows of `W` elements.
struct InRows<K, const W: usize>(K);

/// As [`super::lu::factorize`], of at most [`SMALL`] rows.
pub fn factorize<T: Factor>(matrix: &mut [T], n: usize, pivots: &mut [u32]) -> Factored {
    in_rows!(n, SmallLu { matrix, n, pivots })
}

/// As [`super::factor::cholesky`], of at most [`SMALL`] rows.
pub fn cholesky<T: Field + Real>(matrix: &mut [T], n: usize) -> Option<usize> {
    in_rows!(n, SmallCholesky { matrix, n })
}

/// As [`Triangle::solve`], of at most [`SMALL`] rows.
pub fn solve<T: Field>(triangle: &Triangle<T>, x: &mut [T], width: usize) {
    level().run(SmallSolve { triangle, x, width });
}

struct SmallLu<'a, T> {
    matrix: &'a mut [T],
    n: usize,
    pivots: &'a mut [u32],
}

impl<T: Factor, const W: usize> SimdKernel for InRows<SmallLu<'_, T>, W> {
    type Output = Factored;

    #[inline(always)]
    fn run<I: Isa>(self) -> Factored {
        let SmallLu { matrix, n, pivots } = self.0;
        let zero = <T as super::gemm::Compute>::ZERO;
        let mut space = [[zero; W]; W];
        let rows = &mut space[..n];
        for (i, row) in rows.iter_mut().enumerate() {
            match matrix[i * n..].first_chunk() {
                // With elements of the next rows, past its own.
                Some(more) => *row = *more,
                None => row[..n].copy_from_slice(&matrix[i * n..][..n]),
            }
        }
        let mut made = Factored { odd: false, singular: None };
        let mut best = PivotSearch { size: zero, at: 0 };
        rows.iter().enumerate().for_each(|(i, row)| best.see(row[0], i));
        for (k, pivot) in pivots[..n].iter_mut().enumerate() {
            *pivot = best.at as u32;
            if best.at != k {
                rows.swap(best.at, k);
                made.odd = !made.odd;
            }
            let Some((own, open)) = rows[k..].split_first_mut() else { break };
            // A column of zeros leaves the rows below as they are.
            let pivotless = own[k] == zero;
            if pivotless {
                made.singular = made.singular.or(Some(k));
            }
            let divisor = if pivotless { T::ONE } else { own[k] };
            let mut right = [zero; W];
            if !pivotless {
                right[k + 1..].copy_from_slice(&own[k + 1..]);
            }
            let next = (k + 1).min(n - 1);
            best = PivotSearch { size: zero, at: next };
            for (i, row) in open.iter_mut().enumerate() {
                let factor = row[k] / divisor;
                less::<I, T, W>(row, factor, &right);
                row[k] = factor;
                best.see(row[next], k + 1 + i);
            }
        }
        for (i, row) in rows.iter().enumerate() {
            match matrix[i * n..].first_chunk_mut() {
                // What is past the row belongs to the next ones, which come after it.
                Some(more) => *more = *row,
                None => matrix[i * n..][..n].copy_from_slice(&row[..n]),
            }
        }
        made
    }
}

/// Takes a multiple of one row from another: a part of known length at a time, which stays a vector.
#[inline(always)]
fn less<I: Isa, T: Field, const W: usize>(row: &mut [T; W], factor: T, other: &[T; W]) {
    let parts = row.as_chunks_mut::<PART>().0.iter_mut().zip(other.as_chunks::<PART>().0);
    for (to, other) in parts {
        let mut part = *to;
        for j in 0..PART {
            part[j] = (-factor).fma::<I>(other[j], part[j]);
        }
        *to = part;
    }
}

/// The element of largest size so far, the first of these; NaN counts as the largest, so that it shows in the result.
struct PivotSearch<T> {
    size: T,
    at: usize,
}

impl<T: Factor> PivotSearch<T> {
    #[inline(always)]
    fn see(&mut self, x: T, at: usize) {
        let size = if x < <T as super::gemm::Compute>::ZERO { -x } else { x };
        if size > self.size || size.wide().is_nan() {
            *self = PivotSearch { size, at };
        }
    }
}

struct SmallCholesky<'a, T> {
    matrix: &'a mut [T],
    n: usize,
}

impl<T: Field + Real, const W: usize> SimdKernel for InRows<SmallCholesky<'_, T>, W> {
    type Output = Option<usize>;

    // The rows are those of the transposed factor: each is what the matrix has there, less multiples of those above it.
    #[inline(always)]
    fn run<I: Isa>(self) -> Option<usize> {
        let SmallCholesky { matrix, n } = self.0;
        let mut space = [[<T as super::gemm::Compute>::ZERO; W]; W];
        for i in 0..n {
            let (done, own) = space.split_at_mut(i);
            let own = &mut own[0];
            for (j, to) in own[..n].iter_mut().enumerate().skip(i) {
                *to = matrix[j * n + i];
            }
            for row in &*done {
                less::<I, T, W>(own, row[i], row);
            }
            if !own[i].is_positive() {
                return Some(i);
            }
            let root = own[i].root();
            for x in &mut *own {
                *x = *x / root;
            }
            own[i] = root;
        }
        for (i, out_row) in matrix.chunks_exact_mut(n.max(1)).enumerate() {
            for (x, row) in out_row[..=i].iter_mut().zip(&space) {
                *x = row[i];
            }
        }
        None
    }
}

struct SmallSolve<'a, T> {
    triangle: &'a Triangle<'a, T>,
    x: &'a mut [T],
    width: usize,
}

impl<T: Field> SimdKernel for SmallSolve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let mut from = 0;
        while from < self.width {
            from += match self.width - from {
                16.. => self.columns::<I, 16>(from),
                4.. => self.columns::<I, 4>(from),
                _ => self.columns::<I, 1>(from),
            };
        }
    }
}

impl<T: Field> SmallSolve<'_, T> {
    /// Solves for some columns; gives their number.
    #[inline(always)]
    fn columns<I: Isa, const C: usize>(&mut self, from: usize) -> usize {
        let SmallSolve { triangle, x, width } = self;
        let (n, width) = (triangle.n, *width);
        let Strides { start, row, col, .. } = triangle.from(0, 0);
        let at = |i: usize, j: usize| start as isize + i as isize * row + j as isize * col;
        for step in 0..n {
            // From the last row up where the triangle is an upper one.
            let up = triangle.transposed;
            let j = if up { n - 1 - step } else { step };
            let (above, rest) = x.split_at_mut(j * width);
            let (own, below) = rest.split_at_mut(width);
            let Some(own) = own[from..].first_chunk_mut::<C>() else { break };
            if !triangle.unit {
                let pivot = triangle.data[at(j, j) as usize];
                for x in &mut *own {
                    *x = *x / pivot;
                }
            }
            let own = *own;
            let (open, mut factor) = if up { (above, at(0, j)) } else { (below, at(j + 1, j)) };
            for out_row in open.chunks_exact_mut(width) {
                let Some(to) = out_row[from..].first_chunk_mut::<C>() else { break };
                let by = -triangle.data[factor as usize];
                let mut sums = *to;
                for c in 0..C {
                    sums[c] = by.fma::<I>(own[c], sums[c]);
                }
                *to = sums;
                factor += row;
            }
        }
        C
    }
}
