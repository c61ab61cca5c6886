//! What all rows of a transform share, in lent scratch: cosines and sines of angles. They are computed in `f64`, each on
//! its own, so that no error adds up.

use std::f64::consts::PI;

use tonnage_core::{DType, Result};

use super::lanes::{LANES, ReIm, ReImMut, reborrow};
use super::method::FftMethod;
use crate::linalg::field::Field;
use crate::parallel::{ChunkedPair, GRAIN, cut, cut_bytes_of, for_each_pair};
use crate::workers::Workers;
use tonnage_simd::float::real::select;
use tonnage_simd::float::round;
use tonnage_simd::float::trig::sin_cos_reduced;
use tonnage_simd::{Isa, SimdKernel, level};

/// Angles that are computed at once.
const TOGETHER: usize = 256;

/// Cosines and negated sines of angles; `fraction` gives each as a fraction of the full circle, from 0 to 1, by its number.
pub fn angles<T: Field>(
    [cos, sin]: ReImMut<T>,
    workers: &dyn Workers,
    fraction: &(impl Fn(usize) -> f64 + Sync),
) -> Result<()> {
    let pair = ChunkedPair { a: cos, chunk_a: GRAIN / 4, b: sin, chunk_b: GRAIN / 4 };
    for_each_pair(workers, pair, &|chunk, cos, sin| {
        let mut parts = [0.0; TOGETHER];
        let pieces = cos.chunks_mut(TOGETHER).zip(sin.chunks_mut(TOGETHER));
        for (piece, (cos, sin)) in pieces.enumerate() {
            let first = chunk * (GRAIN / 4) + piece * TOGETHER;
            let parts = &mut parts[..cos.len()];
            parts.iter_mut().zip(first..).for_each(|(part, i)| *part = fraction(i));
            level().run(AngleTable { parts, cos, sin });
        }
    })
}

/// The cosine and minus the sine of fractions of the full circle.
struct AngleTable<'a, T> {
    parts: &'a [f64],
    cos: &'a mut [T],
    sin: &'a mut [T],
}

impl<T: Field> SimdKernel for AngleTable<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for ((part, cos), sin) in self.parts.iter().zip(self.cos).zip(self.sin) {
            // The nearest quarter of the circle is exact, and so is what is left.
            let quarter = round::<I, f64>(4.0 * part);
            let (s, c) = sin_cos_reduced::<I, f64>(2.0 * PI * (part - 0.25 * quarter));
            let odd = (quarter == 1.0) | (quarter == 3.0);
            let (x, y) = (select(odd, s, c), select(odd, c, s));
            *cos = T::of(select((quarter == 1.0) | (quarter == 2.0), -x, x));
            *sin = T::of(select((quarter == 2.0) | (quarter == 3.0), y, -y));
        }
    }
}

/// The `n`-th roots of unity, or the first of them, in the order of the forward transform: e^(-2 pi i k / n).
pub fn roots_of_unity<T: Field>(parts: ReImMut<T>, n: usize, workers: &dyn Workers) -> Result<()> {
    let whole = n as f64;
    angles(parts, workers, &|i| i as f64 / whole)
}

/// Real and imaginary parts cut off scratch.
pub fn two<'a, T: Field>(scratch: &mut &'a mut [u8], count: usize) -> ReImMut<'a, T> {
    [(); 2].map(|()| cut::<T>(scratch, count))
}

/// How many bytes [`two`] takes.
pub fn two_bytes(count: usize, dtype: DType) -> usize {
    2 * cut_bytes_of(count, dtype)
}

/// The angles of passes, and those between the two transforms of a matrix.
pub struct Tables<'a, T> {
    /// Of the first transforms.
    pub rows: ReIm<'a, T>,
    /// Of the second ones.
    pub cols: ReIm<'a, T>,
    /// Of the element in `row` and `col`, as rows of lanes: that of `row * (col % LANES)`.
    pub own: ReIm<'a, T>,
    /// And that of `row * (col - col % LANES)`, a block of columns after the other.
    pub blocks: ReIm<'a, T>,
}

/// Elements of the tables.
fn sizes(method: FftMethod) -> [usize; 4] {
    match method.is_matrix() {
        true => {
            let height = method.height();
            // Factors that are the same share a table.
            let cols = if method.cols == method.rows { 0 } else { method.cols };
            [method.rows, cols, height * LANES, height * method.blocks()]
        }
        false => [method.rows, 0, 0, 0],
    }
}

/// Bytes of the tables.
pub fn table_bytes(method: FftMethod, dtype: DType) -> usize {
    sizes(method).map(|count| two_bytes(count, dtype)).iter().sum()
}

impl<'a, T: Field> Tables<'a, T> {
    /// Made at the front of scratch, which is cut off. All that a matrix gives is times a factor.
    pub fn of(
        method: FftMethod,
        factor: T,
        scratch: &mut &'a mut [u8],
        workers: &dyn Workers,
    ) -> Result<Self> {
        let [rows, cols, own, blocks] = sizes(method).map(|count| two::<T>(scratch, count));
        let whole = method.len as f64;
        let [mut rows, mut cols, mut own, mut blocks] = [rows, cols, own, blocks];
        roots_of_unity(reborrow(&mut rows), method.rows, workers)?;
        roots_of_unity(reborrow(&mut cols), method.cols, workers)?;
        let of_own = |i: usize| (i / LANES * (i % LANES) % method.len) as f64 / whole;
        angles(reborrow(&mut own), workers, &of_own)?;
        let height = method.height();
        let of_block = |i: usize| (i % height * (i / height * LANES) % method.len) as f64 / whole;
        angles(reborrow(&mut blocks), workers, &of_block)?;
        for part in &mut blocks {
            part.iter_mut().for_each(|x| *x = *x * factor);
        }
        let [rows, cols, own, blocks] = [rows, cols, own, blocks].map(|[a, b]| [&*a, &*b]);
        let cols = if method.cols == method.rows { rows } else { cols };
        Ok(Tables { rows, cols, own, blocks })
    }
}
