//! What all rows of a transform share: cosines and sines, and for lengths with a large prime in them the chirp of Bluestein
//! (1970), which makes of any length a convolution whose length is a power of 2.
//!
//! All of it lies in lent scratch. Angles are computed in `f64`, each on its own, so that no error adds up.

use std::f64::consts::PI;

use tonnage_core::{DType, Workers};

use super::stages::{Parts, PartsMut, Pass, is_smooth, radix};
use crate::linalg::field::Field;
use crate::parallel::{GRAIN, Pair, cut, cut_bytes_of, for_each_pair};
use crate::simd::float::real::select;
use crate::simd::float::round;
use crate::simd::float::trig::sin_cos_reduced;
use crate::simd::{Isa, Kernel, level};

/// The length that passes run over: that of the row, or of its convolution.
pub fn passes_over(n: usize) -> usize {
    match is_smooth(n) {
        true => n,
        false => (2 * n - 1).next_power_of_two(),
    }
}

/// Bytes of the tables.
pub fn table_bytes(n: usize, dtype: DType) -> usize {
    let len = passes_over(n);
    let chirp =
        if len == n { 0 } else { 2 * cut_bytes_of(n, dtype) + 4 * cut_bytes_of(len, dtype) };
    2 * cut_bytes_of(len, dtype) + chirp
}

/// Bytes that a thread works in.
pub fn slot_bytes(n: usize, dtype: DType) -> usize {
    4 * cut_bytes_of(passes_over(n), dtype)
}

/// The tables of a length.
pub struct Tables<'a, T> {
    /// Of the row.
    pub n: usize,
    /// That passes run over.
    pub len: usize,
    table: Parts<'a, T>,
    chirp: Option<Chirp<'a, T>>,
}

struct Chirp<'a, T> {
    /// e^(-i pi j^2 / n).
    turns: Parts<'a, T>,
    /// The transform of what the row is convolved with, over its length.
    filter: Parts<'a, T>,
}

/// Angles that are computed at once.
const TOGETHER: usize = 256;

/// Cosines and sines of so many angles, each a part of a turn from 0 to 1 that its number gives, the way that transforms go.
fn angles<T: Field>(
    [cos, sin]: PartsMut<T>,
    workers: &dyn Workers,
    turns: &(impl Fn(usize) -> f64 + Sync),
) {
    let pair = Pair { a: cos, chunk_a: GRAIN / 4, b: sin, chunk_b: GRAIN / 4 };
    for_each_pair(workers, pair, &|chunk, cos, sin| {
        let mut parts = [0.0; TOGETHER];
        let pieces = cos.chunks_mut(TOGETHER).zip(sin.chunks_mut(TOGETHER));
        for (piece, (cos, sin)) in pieces.enumerate() {
            let first = chunk * (GRAIN / 4) + piece * TOGETHER;
            let parts = &mut parts[..cos.len()];
            parts.iter_mut().zip(first..).for_each(|(part, i)| *part = turns(i));
            level().run(Angles { parts, cos, sin });
        }
    });
}

/// The cosine and minus the sine of parts of a turn.
struct Angles<'a, T> {
    parts: &'a [f64],
    cos: &'a mut [T],
    sin: &'a mut [T],
}

impl<T: Field> Kernel for Angles<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for ((part, cos), sin) in self.parts.iter().zip(self.cos).zip(self.sin) {
            // The nearest quarter turn is exact, and so is what is left.
            let quarter = round::<I, f64>(4.0 * part);
            let (s, c) = sin_cos_reduced::<I, f64>(2.0 * PI * (part - 0.25 * quarter));
            let odd = (quarter == 1.0) | (quarter == 3.0);
            let (x, y) = (select(odd, s, c), select(odd, c, s));
            *cos = T::of(select((quarter == 1.0) | (quarter == 2.0), -x, x));
            *sin = T::of(select((quarter == 2.0) | (quarter == 3.0), y, -y));
        }
    }
}

/// The angles of a whole turn in `n` steps, the way that transforms go.
pub fn turn<T: Field>(parts: PartsMut<T>, n: usize, workers: &dyn Workers) {
    let whole = n as f64;
    angles(parts, workers, &|i| i as f64 / whole);
}

fn two<'a, T: Field>(scratch: &mut &'a mut [u8], count: usize) -> PartsMut<'a, T> {
    [(); 2].map(|()| cut::<T>(scratch, count))
}

impl<'a, T: Field> Tables<'a, T> {
    /// Made at the front of scratch, which is cut off.
    pub fn of(n: usize, scratch: &mut &'a mut [u8], workers: &dyn Workers) -> Tables<'a, T> {
        let len = passes_over(n);
        let [cos, sin] = two::<T>(scratch, len);
        turn([&mut *cos, &mut *sin], len, workers);
        let table: Parts<T> = [cos, sin];
        let mut made = Tables { n, len, table, chirp: None };
        if len == n {
            return made;
        }
        let [cos, sin] = two::<T>(scratch, n);
        // Squares are taken modulo a whole turn, as integers: the angles stay small.
        let whole = 2 * n as u128;
        let square = |i: usize| ((i as u128 * i as u128) % whole) as f64;
        angles([&mut *cos, &mut *sin], workers, &|i| square(i) / whole as f64);
        let [re, im] = two::<T>(scratch, len);
        let work = two::<T>(scratch, len);
        re.fill(T::ZERO);
        im.fill(T::ZERO);
        // Conjugate, and over the length here, once.
        let share = T::of(1.0 / len as f64);
        for i in 0..n {
            for at in [i, (len - i) % len] {
                (re[at], im[at]) = (cos[i] * share, -(sin[i] * share));
            }
        }
        made.passes([&mut *re, &mut *im], work);
        made.chirp = Some(Chirp { turns: [cos, sin], filter: [re, im] });
        made
    }

    /// Transforms a row of `len` elements in place, by passes alone.
    fn passes(&self, row: PartsMut<T>, work: PartsMut<T>) {
        let ([mut re, mut im], [mut to_re, mut to_im]) = (row, work);
        let (mut left, mut swapped) = (self.len, false);
        while let Some(radix) = radix(left) {
            let (from, to) = ([&*re, &*im], [&mut *to_re, &mut *to_im]);
            level().run(Pass { from, to, left, radix, table: self.table });
            (re, im, to_re, to_im) = (to_re, to_im, re, im);
            left /= radix;
            swapped = !swapped;
        }
        if swapped {
            to_re.copy_from_slice(re);
            to_im.copy_from_slice(im);
        }
    }

    /// Transforms the first `n` elements of a row in place; behind them, and in `work`, is room for all `len`.
    pub fn run(&self, row: PartsMut<T>, work: PartsMut<T>) {
        let [re, im] = row;
        let Some(Chirp { turns, filter }) = &self.chirp else {
            return self.passes([re, im], work);
        };
        let [to_re, to_im] = work;
        multiply([&mut re[..self.n], &mut im[..self.n]], *turns);
        re[self.n..].fill(T::ZERO);
        im[self.n..].fill(T::ZERO);
        self.passes([&mut *re, &mut *im], [&mut *to_re, &mut *to_im]);
        multiply([&mut *re, &mut *im], *filter);
        // Back: with both parts exchanged the same way is the other way.
        self.passes([&mut *im, &mut *re], [&mut *to_re, &mut *to_im]);
        multiply([&mut re[..self.n], &mut im[..self.n]], *turns);
    }
}

/// Elements times those of another row.
fn multiply<T: Field>(row: PartsMut<T>, by: Parts<T>) {
    level().run(Multiply { row, by });
}

struct Multiply<'a, T> {
    row: PartsMut<'a, T>,
    by: Parts<'a, T>,
}

impl<T: Field> Kernel for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ([re, im], [cos, sin]) = (self.row, self.by);
        for ((re, im), (cos, sin)) in re.iter_mut().zip(im).zip(cos.iter().zip(sin)) {
            let (x, y) = (*re, *im);
            *re = x.fma::<I>(*cos, -(y * *sin));
            *im = x.fma::<I>(*sin, y * *cos);
        }
    }
}
