//! Squares of elements transposed: from rows to lanes and back.
//!
//! A square of 2^m rows is transposed by m perfect shuffles of its elements, each of which interleaves two halves: loops that
//! the compiler makes vectors of on any machine.

use super::lanes::LANES;
use crate::linalg::field::Field;
use tonnage_simd::{Isa, SimdKernel};

/// Elements of a square.
pub const SQUARE: usize = LANES * LANES;

#[inline(always)]
fn interleave<T: Field>(from: &[T; SQUARE], to: &mut [T; SQUARE]) {
    let (pairs, _) = to.as_chunks_mut::<2>();
    for (i, pair) in pairs.iter_mut().enumerate() {
        *pair = [from[i], from[i + SQUARE / 2]];
    }
}

#[inline(always)]
fn transposed<T: Field>(mut x: [T; SQUARE]) -> [T; SQUARE] {
    let mut y = [T::ZERO; SQUARE];
    for _ in 0..LANES.ilog2() / 2 {
        interleave(&x, &mut y);
        interleave(&y, &mut x);
    }
    x
}

/// A square.
pub struct Transpose<'a, T> {
    pub from: &'a [T],
    pub to: &'a mut [T],
}

impl<T: Field> SimdKernel for Transpose<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (from, _) = self.from.as_chunks::<SQUARE>();
        let (to, _) = self.to.as_chunks_mut::<SQUARE>();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = transposed(*from));
    }
}

/// At most [`LANES`] rows of length `n` to rows of lanes; where there are fewer, the other lanes are 0.
pub struct ToLanes<'a, T> {
    pub from: &'a [T],
    pub n: usize,
    pub to: &'a mut [T],
}

impl<T: Field> SimdKernel for ToLanes<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (whole, rest) = self.to.as_chunks_mut::<SQUARE>();
        for (part, to) in whole.iter_mut().enumerate() {
            let mut square = [T::ZERO; SQUARE];
            let (rows, _) = square.as_chunks_mut::<LANES>();
            for (row, from) in rows.iter_mut().zip(self.from.chunks_exact(self.n)) {
                if let Some(from) = from[part * LANES..].first_chunk() {
                    *row = *from;
                }
            }
            *to = transposed(square);
        }
        let done = whole.len() * LANES;
        for (lane, from) in self.from.chunks_exact(self.n).enumerate() {
            let rows = rest.chunks_exact_mut(LANES).zip(&from[done..]);
            rows.for_each(|(to, from)| to[lane] = *from);
        }
    }
}

/// Rows of lanes to rows of length `n`, as many as there is room for, times a factor.
pub struct ToRows<'a, T> {
    pub from: &'a [T],
    pub n: usize,
    pub factor: T,
    pub to: &'a mut [T],
}

impl<T: Field> SimdKernel for ToRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (whole, rest) = self.from.as_chunks::<SQUARE>();
        for (part, from) in whole.iter().enumerate() {
            let mut square = *from;
            square.iter_mut().for_each(|x| *x = *x * self.factor);
            let square = transposed(square);
            let (rows, _) = square.as_chunks::<LANES>();
            for (row, to) in rows.iter().zip(self.to.chunks_exact_mut(self.n)) {
                if let Some(to) = to[part * LANES..].first_chunk_mut() {
                    *to = *row;
                }
            }
        }
        let done = whole.len() * LANES;
        for (lane, to) in self.to.chunks_exact_mut(self.n).enumerate() {
            let rows = rest.chunks_exact(LANES).zip(&mut to[done..]);
            rows.for_each(|(from, to)| *to = from[lane] * self.factor);
        }
    }
}
