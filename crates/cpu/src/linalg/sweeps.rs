//! Three diagonals to one, the eigenvalues: the QL method with implicit shifts (Bowdler, Martin, Reinsch and Wilkinson, 1968).
//!
//! The diagonals are worked on in `f64`. The rows of a matrix are rotated along, in strips of columns that stay in cache, on all
//! threads, by some sweeps at a time: a row passes through all of them in registers, each a row behind the one before it (Van
//! Zee, van de Geijn and Quintana-Orti, 2014). The order of rotations depends on the diagonals alone.

use tonnage_core::Result;

use super::field::Field;
use crate::workers::{Workers, for_each_chunk};
use tonnage_simd::{Isa, SimdKernel, level};

/// Columns of a strip.
pub const STRIP: usize = 32;

/// Sweeps at a time: what lies between them fits registers.
const TOGETHER: usize = 4;

/// Sweeps that an eigenvalue may take: two or three do.
const SWEEPS: usize = 60;

/// The cosine and sine that a row and the next are rotated by.
pub type Rotation<T> = [T; 2];

/// How many of them there has to be room for.
pub fn rotations(n: usize) -> usize {
    TOGETHER * padded(n)
}

/// With rows beyond both ends, which rotations leave as they are.
fn padded(n: usize) -> usize {
    n + 2 * TOGETHER
}

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
    rotations: &mut [Rotation<T>],
    workers: &dyn Workers,
) -> Result<Option<usize>> {
    let n = d.len();
    let most = d.iter().chain(&e[..n.saturating_sub(1)]).fold(0.0f64, |most, x| most.max(x.abs()));
    // Brought near 1 by a power of 2, so that squares are numbers.
    let scale = if most > 0.0 { most.log2().floor().exp2() } else { 1.0 };
    d.iter_mut().chain(&mut *e).for_each(|x| *x /= scale);
    let mut batch = Batch { rotations, n, count: 0, low: n, high: 0 };
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
                return Ok(Some(first));
            }
            left -= 1;
            step(d, e, first, last, batch.next(first, last));
            if batch.count == TOGETHER {
                batch.apply(strips, workers)?;
            }
        }
    }
    batch.apply(strips, workers)?;
    d.iter_mut().for_each(|x| *x *= scale);
    Ok(None)
}

/// One sweep over the block from `first` to `last`: `rotations[i]` becomes that of rows `i` and `i + 1`.
fn step<T: Field>(
    d: &mut [f64],
    e: &mut [f64],
    first: usize,
    last: usize,
    rotations: &mut [Rotation<T>],
) {
    // The shift is the eigenvalue of the first two rows that is nearer to the first.
    let slope = (d[first + 1] - d[first]) / (2.0 * e[first]);
    let root = slope.hypot(1.0).copysign(slope);
    let mut g = d[last] - d[first] + e[first] / (slope + root);
    let (mut sin, mut cos, mut shift) = (1.0, 1.0, 0.0);
    for i in (first..last).rev() {
        let (f, b) = (sin * e[i], cos * e[i]);
        let r = (f * f + g * g).sqrt();
        e[i + 1] = r;
        if r == 0.0 {
            // It falls apart here: the rest waits for the next sweep.
            d[i + 1] -= shift;
            e[last] = 0.0;
            return;
        }
        (sin, cos) = (f / r, g / r);
        let next = d[i + 1] - shift;
        let rotated = (d[i] - next) * sin + 2.0 * cos * b;
        shift = sin * rotated;
        d[i + 1] = next + shift;
        g = cos * rotated - b;
        rotations[i] = [T::of(cos), T::of(sin)];
    }
    d[first] -= shift;
    e[first] = g;
    e[last] = 0.0;
}

/// Sweeps that wait for each other.
struct Batch<'a, T> {
    rotations: &'a mut [Rotation<T>],
    n: usize,
    count: usize,
    /// The first row that any of them rotates, and the last.
    low: usize,
    high: usize,
}

impl<T: Field> Batch<'_, T> {
    /// Room for a sweep over these rows, which rotates nothing yet.
    fn next(&mut self, first: usize, last: usize) -> &mut [Rotation<T>] {
        let each = padded(self.n);
        let own = &mut self.rotations[self.count * each..][..each];
        own.fill([T::ONE, T::ZERO]);
        self.count += 1;
        (self.low, self.high) = (self.low.min(first), self.high.max(last));
        &mut own[TOGETHER..]
    }

    /// Rotates what lies in strips by the sweeps that wait.
    fn apply(&mut self, strips: &mut [T], workers: &dyn Workers) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let (n, low, high) = (self.n, self.low, self.high);
        while self.count < TOGETHER {
            self.next(low, high);
        }
        let rotations = &*self.rotations;
        for_each_chunk(workers, strips, n * STRIP, &|_, strip| {
            level().run(Passing { strip, rotations, low, high });
        })?;
        (self.count, self.low, self.high) = (0, n, 0);
        Ok(())
    }
}

/// The sweeps of a batch, on one strip.
struct Passing<'a, T> {
    strip: &'a mut [T],
    rotations: &'a [Rotation<T>],
    low: usize,
    high: usize,
}

impl<T: Field> SimdKernel for Passing<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Passing { strip, rotations, low, high } = self;
        let (rows, _) = strip.as_chunks_mut::<STRIP>();
        let each = rotations.len() / TOGETHER;
        let sweeps: [&[Rotation<T>]; TOGETHER] =
            std::array::from_fn(|s| &rotations[s * each + s..(s + 1) * each]);
        // Each sweep keeps the row that it is to rotate with the next one that comes.
        let mut pending = [[T::ZERO; STRIP]; TOGETHER];
        // The row that comes in, `TOGETHER` on: those below `low` are none, and push the last ones out.
        for at in (low..=high + TOGETHER).rev() {
            let mut row = match at.checked_sub(TOGETHER) {
                Some(at) if at >= low => rows[at],
                _ => [T::ZERO; STRIP],
            };
            for (pending, sweep) in pending.iter_mut().zip(sweeps) {
                let [cos, sin] = sweep[at];
                for i in 0..STRIP {
                    let (x, y) = (row[i], pending[i]);
                    row[i] = sin.fma::<I>(x, cos * y);
                    pending[i] = cos.fma::<I>(x, -(sin * y));
                }
            }
            if at <= high {
                rows[at] = row;
            }
        }
    }
}
