//! Symmetric matrices by way of a tridiagonal one: reflections take a matrix to three diagonals, and rotations those to
//! one (the QL method with implicit shifts; Bowdler, Martin, Reinsch and Wilkinson, 1968).
//!
//! The three diagonals are worked on in `f64`. The rotations of one sweep are applied together, to strips of columns that
//! stay in cache, on all threads. Their order depends on the matrix alone.

use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Result, Workers};

use super::field::{Field, dot_in};
use super::householder::{BLOCK, Room, reflect};
use crate::parallel::rows_at_once;
use crate::simd::{Isa, Kernel, level};

/// Columns of a strip.
pub const STRIP: usize = 64;
/// Sweeps that an eigenvalue may take: two or three do.
const SWEEPS: usize = 60;

/// Takes a symmetric matrix to three diagonals. Row `j` of `vectors`, as long as the matrix is wide, becomes the vector of
/// reflection `j`. The matrix is used up.
///
/// A reflection takes v wᵀ + w vᵀ from the matrix. Within a block that is put off: a row gets it when its turn comes, and
/// products with the matrix are corrected for it. So a step reads the matrix once and writes none of it, and a block ends
/// with two products, which the matmul core runs (Dongarra, Sorensen and Hammarling, 1989).
pub fn reduce<T: Field>(
    matrix: &mut [T],
    n: usize,
    vectors: &mut [T],
    factors: &mut [T],
    (diagonal, beside): (&mut [f64], &mut [f64]),
    room: &mut Room<T>,
    workers: &dyn Workers,
) -> Result<()> {
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        // -w of each reflection, a row.
        let others = std::mem::take(&mut room.vectors);
        for j in start..end {
            let (done, own) = vectors.split_at_mut(j * n);
            let (others, product) = others.split_at_mut((j - start) * n);
            let put_off = PutOff { v: &done[start * n..], w: others, n };
            let (own, product) = (&mut own[..n], &mut product[..n]);
            let (row, below) = matrix[j * n..].split_at_mut(n);
            level().run(Bring { put_off, row, from: j });
            diagonal[j] = row[j].wide();
            own[..=j].fill(T::ZERO);
            own[j + 1..].copy_from_slice(&row[j + 1..]);
            let (factor, left) = reflect(&mut own[j + 1..]);
            factors[j] = factor;
            beside[j] = left.wide();
            product.fill(T::ZERO);
            if j + 2 >= n {
                continue;
            }
            // p = factor A v, then w = p - factor (p v) / 2 v.
            let (own, from, at_once) = (&own[j + 1..], j + 1, rows_at_once(n));
            for_each_chunk(workers, &mut product[from..], at_once, &|chunk, out| {
                let rows = &below[chunk * at_once * n..];
                level().run(Times { rows, n, from, vector: own, out });
            });
            level().run(Finish { put_off, from, own, factor, product: &mut product[from..] });
        }
        room.vectors = others;
        if end < n {
            let side = n - end;
            let reflected = &vectors[start * n..end * n];
            room.add_both(
                reflected,
                [end - start, n, end],
                &mut matrix[end * n + end..],
                side,
                workers,
            )?;
        }
    }
    Ok(())
}

/// What the reflections of a block have still to take away: v and -w of each, a row of `n`.
#[derive(Clone, Copy)]
struct PutOff<'a, T> {
    v: &'a [T],
    w: &'a [T],
    n: usize,
}

impl<'a, T> PutOff<'a, T> {
    #[inline(always)]
    fn pairs(&self) -> impl Iterator<Item = (&'a [T], &'a [T])> {
        self.v.chunks_exact(self.n).zip(self.w.chunks_exact(self.n))
    }
}

/// Brings a row of the matrix up to date, from its diagonal on.
struct Bring<'a, T> {
    put_off: PutOff<'a, T>,
    row: &'a mut [T],
    from: usize,
}

impl<T: Field> Kernel for Bring<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let row = &mut self.row[self.from..];
        for (v, w) in self.put_off.pairs() {
            let (v, w) = (&v[self.from..], &w[self.from..]);
            add_both_in::<I, T>(row, (v[0], w), (w[0], v));
        }
    }
}

/// Adds two multiples at once.
#[inline(always)]
fn add_both_in<I: Isa, T: Field>(to: &mut [T], (a, x): (T, &[T]), (b, y): (T, &[T])) {
    for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
        *to = b.fma::<I>(*y, a.fma::<I>(*x, *to));
    }
}

/// Corrects a product with the matrix, and makes -w of it.
struct Finish<'a, T> {
    put_off: PutOff<'a, T>,
    from: usize,
    own: &'a [T],
    factor: T,
    product: &'a mut [T],
}

impl<T: Field> Kernel for Finish<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Finish { put_off, from, own, factor, product } = self;
        for (v, w) in put_off.pairs() {
            let (v, w) = (&v[from..], &w[from..]);
            let (by_w, by_v) = (dot_in::<I, T>(w, own), dot_in::<I, T>(v, own));
            add_both_in::<I, T>(product, (by_w, v), (by_v, w));
        }
        product.iter_mut().for_each(|p| *p = *p * factor);
        let half = T::of(factor.wide() * 0.5 * dot_in::<I, T>(product, own).wide());
        for (p, v) in product.iter_mut().zip(own) {
            *p = half.fma::<I>(*v, -*p);
        }
    }
}

/// Rows times a vector.
struct Times<'a, T> {
    rows: &'a [T],
    n: usize,
    from: usize,
    vector: &'a [T],
    out: &'a mut [T],
}

impl<T: Field> Kernel for Times<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (row, to) in self.rows.chunks_exact(self.n).zip(self.out) {
            *to = dot_in::<I, T>(&row[self.from..], self.vector);
        }
    }
}

/// A rotation of a row and the next: the row, a cosine and a sine.
pub type Rotation = [f64; 3];

/// Lays a square out in strips of columns of its transpose, as [`rotate`] wants it.
pub fn into_strips<T: Field>(square: &[T], n: usize, strips: &mut [T]) {
    strips.fill(T::ZERO);
    for (strip, rows) in strips.chunks_exact_mut(n * STRIP).zip(square.chunks(n * STRIP)) {
        for (i, row) in rows.chunks_exact(n).enumerate() {
            row.iter().zip(strip.chunks_exact_mut(STRIP)).for_each(|(x, to)| to[i] = *x);
        }
    }
}

/// Takes three diagonals to one, the eigenvalues, and rotates the rows of a matrix that lies in strips along: from the
/// transposed product of the reflections they become the eigenvectors. An eigenvalue that is not found gives its number.
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
        let Some([last, ..]) = self.sweep.first() else { return };
        let (rows, _) = self.strip.as_chunks_mut::<STRIP>();
        // Of two rows that are rotated the upper one is the lower one of the next rotation: it stays in registers.
        let mut at = *last as usize + 1;
        let mut below = rows[at];
        for [_, cos, sin] in self.sweep {
            let (cos, sin) = (T::of(*cos), T::of(*sin));
            let (above, to) = rows.split_at_mut(at);
            let (above, to) = (&above[at - 1], &mut to[0]);
            for i in 0..STRIP {
                let (x, y) = (above[i], below[i]);
                to[i] = sin.fma::<I>(x, cos * y);
                below[i] = cos.fma::<I>(x, -(sin * y));
            }
            at -= 1;
        }
        rows[at] = below;
    }
}

/// Writes the product of the reflections of [`reduce`], the last one on the right.
pub fn orthogonal<T: Field>(
    vectors: &[T],
    factors: &[T],
    out: &mut [T],
    n: usize,
    room: &mut Room<T>,
    workers: &dyn Workers,
) -> Result<()> {
    out.fill(T::ZERO);
    (0..n).for_each(|i| out[i * n + i] = T::ONE);
    for start in (0..n).step_by(BLOCK).rev() {
        let (end, len) = (n.min(start + BLOCK), n - start);
        // A block leaves what is above it, and to the left, as it is.
        let held = std::mem::take(&mut room.vectors);
        let block = &mut held[..(end - start) * len];
        for (to, from) in block.chunks_exact_mut(len).zip(vectors[start * n..].chunks_exact(n)) {
            to.copy_from_slice(&from[start..]);
        }
        let part = &mut out[start * n + start..];
        room.apply(block, &factors[start..end], false, part, [len, n], workers)?;
        room.vectors = held;
    }
    Ok(())
}
