//! Rows made orthogonal by rotating pairs of them, until none has anything in common with another (Hestenes, 1958).
//!
//! Neighbours are rotated and change places, the odd pairs and the even ones in turn, so that after as many steps as there
//! are rows all have met. Pairs of one step share nothing: threads take them, and the bits stay the same.

use std::sync::atomic::{AtomicBool, Ordering};

use tonnage_core::Result;
use tonnage_ops::linalg::Size;

use super::field::{Field, dot_in};
use super::gemm::{Matrix, NoEpilogue, Strides, Target, gemm};
use crate::workers::{Workers, for_each_chunk};
use tonnage_simd::{Isa, SimdKernel, level};

/// Rounds in which all rows meet; some ten do.
const ROUNDS: usize = 60;

/// Makes the first `n` elements of rows of `width` orthogonal to those of all other rows; what follows them is rotated along.
/// Rows whose length is at most `least` are ignored. False where it does not converge.
pub fn orthogonalize<T: Field>(
    rows: &mut [T],
    n: usize,
    width: usize,
    least: f64,
    workers: &dyn Workers,
) -> Result<bool> {
    let count = rows.len() / width.max(1);
    let close = T::STEP * (n as f64).sqrt().max(2.0);
    for _ in 0..ROUNDS {
        let moved = AtomicBool::new(false);
        for step in 0..count {
            let first = step % 2;
            let pairs = (count - first) / 2;
            let part = &mut rows[first * width..(first + 2 * pairs) * width];
            for_each_chunk(workers, part, 2 * width, &|_, pair| {
                let (a, b) = pair.split_at_mut(width);
                if level().run(RowPair { a, b, n, close, least, stay: false }) {
                    moved.store(true, Ordering::Relaxed);
                }
            })?;
        }
        if !moved.into_inner() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same for rows that are nearly orthogonal already, as many as `n`: the products of all with each other, which the
/// matmul core makes, tell which pairs are left to rotate. `products` has room for them.
pub fn refine<T: Field>(
    rows: &mut [T],
    n: usize,
    width: usize,
    least: f64,
    products: &mut [T],
    (packing, workers): (&mut [u8], &dyn Workers),
) -> Result<bool> {
    let close = T::STEP * (n as f64).sqrt().max(2.0);
    let (size, along) = (Size::single(n, n, n), Strides::rows_of(width));
    for _ in 0..ROUNDS {
        let (left, right) =
            (Matrix::left(&*rows, along), Matrix::right(&*rows, along.transposed()));
        gemm(size, &left, &right, Target::new(products, size), &NoEpilogue, packing, workers)?;
        let mut moved = false;
        for i in 0..n {
            workers.check()?;
            let own = products[i * n + i].wide();
            for j in i + 1..n {
                // A threshold of half as much: the pair itself decides.
                let other = products[j * n + j].wide();
                let common = 2.0 * products[i * n + j].wide();
                if common * common > close * close * own * other {
                    let (above, below) = rows.split_at_mut(j * width);
                    let (a, b) = (&mut above[i * width..][..width], &mut below[..width]);
                    moved |= level().run(RowPair { a, b, n, close, least, stay: true });
                }
            }
        }
        if !moved {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Two rows that are rotated, and change places unless they are to stay; whether there was anything to rotate.
struct RowPair<'a, T> {
    a: &'a mut [T],
    b: &'a mut [T],
    n: usize,
    close: f64,
    least: f64,
    stay: bool,
}

impl<T: Field> SimdKernel for RowPair<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run<I: Isa>(self) -> bool {
        let RowPair { a, b, stay, .. } = self;
        let (own, other) = (&a[..self.n], &b[..self.n]);
        let (aa, bb) = (dot_in::<I, T>(own, own).wide(), dot_in::<I, T>(other, other).wide());
        let both = dot_in::<I, T>(own, other).wide();
        let lengths = [aa.sqrt(), bb.sqrt()];
        let counts = lengths.iter().all(|length| *length > self.least);
        if !(counts && both.abs() > self.close * lengths[0] * lengths[1]) {
            if !stay {
                a.swap_with_slice(b);
            }
            return false;
        }
        let slope = (bb - aa) / (2.0 * both);
        let tan = (1.0 / (slope.abs() + slope.hypot(1.0))).copysign(slope);
        let cos = 1.0 / tan.hypot(1.0);
        let (cos, sin) = (T::of(cos), T::of(cos * tan));
        for (a, b) in a.iter_mut().zip(b) {
            let (x, y) = (*a, *b);
            let rotated = [cos.fma::<I>(x, -(sin * y)), sin.fma::<I>(x, cos * y)];
            [*a, *b] = if stay { rotated } else { [rotated[1], rotated[0]] };
        }
        true
    }
}
