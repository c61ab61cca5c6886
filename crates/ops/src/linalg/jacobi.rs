//! Rows made orthogonal by rotating pairs of them, until none has anything in common with another (Hestenes, 1958).
//!
//! Neighbours are rotated and change places, the odd pairs and the even ones in turn, so that after as many steps as there
//! are rows all have met. Pairs of one step share nothing: threads take them, and the bits stay the same.

use std::sync::atomic::{AtomicBool, Ordering};

use tonnage_core::Workers;
use tonnage_core::workers::for_each_chunk;

use super::field::{Field, dot_in};
use crate::simd::{Isa, Kernel, level};

/// Rounds in which all rows meet; some ten do.
const ROUNDS: usize = 60;

/// Makes the first `n` elements of rows of `width` orthogonal to those of all other rows; what follows them is rotated along.
/// Rows that are no longer than `least` are of no account. False where it does not come to an end.
pub fn orthogonalize<T: Field>(
    rows: &mut [T],
    n: usize,
    width: usize,
    least: f64,
    workers: &dyn Workers,
) -> bool {
    let count = rows.len() / width.max(1);
    let close = T::STEP * (n as f64).sqrt().max(2.0);
    for _ in 0..ROUNDS {
        let moved = AtomicBool::new(false);
        for step in 0..count {
            let first = step % 2;
            let pairs = (count - first) / 2;
            let part = &mut rows[first * width..(first + 2 * pairs) * width];
            for_each_chunk(workers, part, 2 * width, &|_, pair| {
                if level().run(Pair { pair, n, close, least }) {
                    moved.store(true, Ordering::Relaxed);
                }
            });
        }
        if !moved.into_inner() {
            return true;
        }
    }
    false
}

/// Two rows that are rotated and change places; whether there was anything to rotate.
struct Pair<'a, T> {
    pair: &'a mut [T],
    n: usize,
    close: f64,
    least: f64,
}

impl<T: Field> Kernel for Pair<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run<I: Isa>(self) -> bool {
        let (a, b) = self.pair.split_at_mut(self.pair.len() / 2);
        let (own, other) = (&a[..self.n], &b[..self.n]);
        let (aa, bb) = (dot_in::<I, T>(own, own).wide(), dot_in::<I, T>(other, other).wide());
        let both = dot_in::<I, T>(own, other).wide();
        let lengths = [aa.sqrt(), bb.sqrt()];
        let counts = lengths.iter().all(|length| *length > self.least);
        if !(counts && both.abs() > self.close * lengths[0] * lengths[1]) {
            a.swap_with_slice(b);
            return false;
        }
        let slope = (bb - aa) / (2.0 * both);
        let tan = (1.0 / (slope.abs() + slope.hypot(1.0))).copysign(slope);
        let cos = 1.0 / tan.hypot(1.0);
        let (cos, sin) = (T::of(cos), T::of(cos * tan));
        for (a, b) in a.iter_mut().zip(b) {
            let (x, y) = (*a, *b);
            *b = cos.fma::<I>(x, -(sin * y));
            *a = sin.fma::<I>(x, cos * y);
        }
        true
    }
}
