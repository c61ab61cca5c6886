//! Symmetric matrices by way of a tridiagonal one: reflections take a matrix to three diagonals, and rotations those to
//! one (the QL method with implicit shifts; Bowdler, Martin, Reinsch and Wilkinson, 1968).
//!
//! The three diagonals are worked on in `f64`. The rotations of one sweep are applied together, to strips of columns that
//! stay in cache, on all threads. Their order depends on the matrix alone.

use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Result, Workers};

use super::field::{Field, add_in, dot_in};
use super::householder::{BLOCK, Room, reflect};
use crate::parallel::rows_at_once;
use crate::simd::{Isa, Kernel, level};

/// Columns of a strip.
pub const STRIP: usize = 64;
/// Sweeps that an eigenvalue may take: two or three do.
const SWEEPS: usize = 60;

/// Takes a symmetric matrix to three diagonals. Row `j` of `vectors`, as long as the matrix is wide, becomes the vector of
/// reflection `j`. `work` has room for two rows. The matrix is used up.
pub fn reduce<T: Field>(
    matrix: &mut [T],
    n: usize,
    vectors: &mut [T],
    factors: &mut [T],
    (diagonal, beside): (&mut [f64], &mut [f64]),
    work: &mut [T],
    workers: &dyn Workers,
) {
    let (product, rest) = work.split_at_mut(n);
    for j in 0..n {
        diagonal[j] = matrix[j * n + j].wide();
        let own = &mut vectors[j * n..(j + 1) * n];
        own[..=j].fill(T::ZERO);
        own[j + 1..].copy_from_slice(&matrix[j * n + j + 1..(j + 1) * n]);
        let (factor, left) = reflect(&mut own[j + 1..]);
        factors[j] = factor;
        beside[j] = left.wide();
        if j + 2 >= n {
            continue;
        }
        let (own, from) = (&own[j + 1..], j + 1);
        // p = factor A v, then w = p - factor (p v) / 2 v, and A - v wᵀ - w vᵀ.
        let p = &mut product[from..n];
        let trailing = &matrix[from * n..];
        let at_once = rows_at_once(n);
        for_each_chunk(workers, p, at_once, &|chunk, out| {
            let rows = &trailing[chunk * at_once * n..];
            level().run(Times { rows, n, from, vector: own, factor, out });
        });
        let half = factor.wide() * 0.5 * super::field::dot(p, own).wide();
        let w = &mut rest[from..n];
        for ((w, p), v) in w.iter_mut().zip(&*p).zip(own) {
            *w = *p - T::of(half) * *v;
        }
        let w = &*w;
        for_each_chunk(workers, &mut matrix[from * n..], at_once * n, &|chunk, rows| {
            level().run(Update { rows, n, from, first: chunk * at_once, v: own, w });
        });
    }
}

/// Rows times a vector.
struct Times<'a, T> {
    rows: &'a [T],
    n: usize,
    from: usize,
    vector: &'a [T],
    factor: T,
    out: &'a mut [T],
}

impl<T: Field> Kernel for Times<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (row, to) in self.rows.chunks_exact(self.n).zip(self.out) {
            *to = self.factor * dot_in::<I, T>(&row[self.from..], self.vector);
        }
    }
}

/// Takes the products of two vectors, both ways round, from rows.
struct Update<'a, T> {
    rows: &'a mut [T],
    n: usize,
    from: usize,
    first: usize,
    v: &'a [T],
    w: &'a [T],
}

impl<T: Field> Kernel for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (i, row) in self.rows.chunks_exact_mut(self.n).enumerate() {
            let row = &mut row[self.from..];
            add_in::<I, T>(row, -self.v[self.first + i], self.w);
            add_in::<I, T>(row, -self.w[self.first + i], self.v);
        }
    }
}

/// A rotation of a row and the next: the row, a cosine and a sine.
pub type Rotation = [f64; 3];

/// Takes three diagonals to one, the eigenvalues, and rotates the rows of a matrix that lies in strips along: from ones on
/// its diagonal they become the eigenvectors. An eigenvalue that is not found gives its number.
pub fn rotate<T: Field>(
    d: &mut [f64],
    e: &mut [f64],
    strips: &mut [T],
    sweep: &mut [Rotation],
    workers: &dyn Workers,
) -> std::result::Result<(), usize> {
    let n = d.len();
    for first in 0..n {
        let mut left = SWEEPS;
        loop {
            let small = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
            let last = (first..n - 1).find(|i| small(*i)).unwrap_or(n - 1);
            if last == first {
                break;
            }
            // NaN is never small.
            if left == 0 {
                return Err(first);
            }
            left -= 1;
            let count = step(d, e, first, last, sweep);
            let sweep = &sweep[..count];
            for_each_chunk(workers, strips, n * STRIP, &|_, strip| {
                level().run(Sweep { strip, sweep });
            });
        }
    }
    Ok(())
}

/// One sweep over the block from `first` to `last`; gives how many rotations it took.
fn step(d: &mut [f64], e: &mut [f64], first: usize, last: usize, sweep: &mut [Rotation]) -> usize {
    // The shift is the eigenvalue of the first two rows that is nearer to the first.
    let slope = (d[first + 1] - d[first]) / (2.0 * e[first]);
    let root = slope.hypot(1.0).copysign(slope);
    let mut g = d[last] - d[first] + e[first] / (slope + root);
    let (mut sin, mut cos, mut shift) = (1.0, 1.0, 0.0);
    let mut count = 0;
    for i in (first..last).rev() {
        let (f, b) = (sin * e[i], cos * e[i]);
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            // It falls apart here: the rest waits for the next sweep.
            d[i + 1] -= shift;
            e[last] = 0.0;
            return count;
        }
        (sin, cos) = (f / r, g / r);
        let next = d[i + 1] - shift;
        let turned = (d[i] - next) * sin + 2.0 * cos * b;
        shift = sin * turned;
        d[i + 1] = next + shift;
        g = cos * turned - b;
        sweep[count] = [i as f64, cos, sin];
        count += 1;
    }
    d[first] -= shift;
    e[first] = g;
    e[last] = 0.0;
    count
}

/// The rotations of a sweep, on one strip.
struct Sweep<'a, T> {
    strip: &'a mut [T],
    sweep: &'a [Rotation],
}

impl<T: Field> Kernel for Sweep<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for [row, cos, sin] in self.sweep {
            let (cos, sin) = (T::of(*cos), T::of(*sin));
            let rows = &mut self.strip[*row as usize * STRIP..][..2 * STRIP];
            let (a, b) = rows.split_at_mut(STRIP);
            for (a, b) in a.iter_mut().zip(b) {
                let (x, y) = (*a, *b);
                *b = sin.fma::<I>(x, cos * y);
                *a = cos.fma::<I>(x, -(sin * y));
            }
        }
    }
}

/// Multiplies a matrix, rows of `n` elements, by the reflections of [`reduce`], the last one first.
pub fn unreduce<T: Field>(
    vectors: &[T],
    factors: &[T],
    matrix: &mut [T],
    n: usize,
    room: &mut Room<T>,
    workers: &dyn Workers,
) -> Result<()> {
    for start in (0..n).step_by(BLOCK).rev() {
        let end = n.min(start + BLOCK);
        room.apply(
            &vectors[start * n..end * n],
            &factors[start..end],
            false,
            matrix,
            [n, n],
            workers,
        )?;
    }
    Ok(())
}
