//! GEMV and products with a few rows: the other operand is read once, so memory sets the pace and packing
//! would double the traffic. Safe loops that the compiler vectorizes for each level.

use super::compute::{Compute, Reads};
use super::fetch;

/// Products with at most that many rows (or columns) are run as GEMV.
pub const GEMV_MAX: usize = 4;

/// Rows of the large operand that are read side by side: enough streams for the prefetcher, and one
/// load and store of the sums for that many multiplications.
const RUN: usize = 8;

/// Elements of each of them in turn, before those of the next rows are prefetched: rows are as far apart as pages, and a
/// prefetcher that starts anew in each comes too late for its first cache lines.
const PART: usize = 128;

/// Bytes of a row from which on it makes up for that, and asking takes longer than waiting: two pages.
const LONG: usize = 8 << 10;

/// `sums[f][i] += sum over k of thin[k][f] * rows[k][i]`. Elements of the large operand are widened as they are read, where they
/// have to be.
pub struct GemvStream<'a, C, T = C> {
    /// The small operand, packed: `count` elements for each step of K.
    pub thin: &'a [C],
    /// How many rows the small operand has.
    pub count: usize,
    /// The large operand, MN-major.
    pub data: &'a [T],
    /// Where the first row starts in `data`.
    pub start: isize,
    /// From one step of K to the next in `data`.
    pub k_stride: isize,
    /// How many steps of K.
    pub k: usize,
    /// How many elements of each row.
    pub len: usize,
}

impl<'a, C, T> GemvStream<'a, C, T> {
    #[inline(always)]
    pub(super) fn row(&self, k: usize) -> &'a [T] {
        let at = (self.start + k as isize * self.k_stride) as usize;
        &self.data[at..][..self.len]
    }
}

#[inline(always)]
pub(super) fn stream<C: Compute, T: Reads<C>, const FUSED: bool>(
    s: &GemvStream<'_, C, T>,
    sums: &mut [C],
) {
    let asks = s.len * size_of::<T>() < LONG;
    let part = if asks { PART } else { s.len };
    let mut k = 0;
    while k + RUN <= s.k {
        let rows: [&[T]; RUN] = std::array::from_fn(|j| s.row(k + j));
        for (f, sums) in sums.chunks_exact_mut(s.len).take(s.count).enumerate() {
            let w: [C; RUN] = std::array::from_fn(|j| s.thin[(k + j) * s.count + f]);
            for (at, sums) in (0..s.len).step_by(part).zip(sums.chunks_mut(part)) {
                let len = sums.len();
                if asks && f == 0 {
                    for row in rows {
                        let next = row.as_ptr().wrapping_offset(RUN as isize * s.k_stride);
                        fetch(next.wrapping_add(at), len);
                    }
                }
                let [r0, r1, r2, r3, r4, r5, r6, r7] = rows.map(|row| &row[at..][..len]);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let mut x = *sum;
                    x = C::mul_add::<FUSED>(w[0], r0[i].read(), x);
                    x = C::mul_add::<FUSED>(w[1], r1[i].read(), x);
                    x = C::mul_add::<FUSED>(w[2], r2[i].read(), x);
                    x = C::mul_add::<FUSED>(w[3], r3[i].read(), x);
                    x = C::mul_add::<FUSED>(w[4], r4[i].read(), x);
                    x = C::mul_add::<FUSED>(w[5], r5[i].read(), x);
                    x = C::mul_add::<FUSED>(w[6], r6[i].read(), x);
                    x = C::mul_add::<FUSED>(w[7], r7[i].read(), x);
                    *sum = x;
                }
            }
        }
        k += RUN;
    }
    while k < s.k {
        let row = s.row(k);
        for (f, sums) in sums.chunks_exact_mut(s.len).take(s.count).enumerate() {
            let w = s.thin[k * s.count + f];
            for (sum, &y) in sums.iter_mut().zip(row) {
                *sum = C::mul_add::<FUSED>(w, y.read(), *sum);
            }
        }
        k += 1;
    }
}

/// Partial sums of a dot product: several vectors at every level, so that additions overlap.
const LANES: usize = 64;

/// Rows whose dot products are computed side by side, where there are as many: each is a stream of memory.
pub const SIDE_BY_SIDE: usize = 8;

/// Elements of each of them in turn, so that sums need not all stay in registers.
const DOT_CHUNK: usize = 2 * LANES;

/// Lane `j` adds the products at `j`, `j + 64`, ...; the lanes are then added as a balanced tree.
#[inline(always)]
pub(super) fn dot<C: Compute, const FUSED: bool>(x: &[C], y: &[C]) -> C {
    let mut lanes = [C::ZERO; LANES];
    multiply::<C, FUSED>(x, y, &mut lanes);
    total(lanes)
}

/// Adds the dot products of `x` with rows of its length, each the same as by [`dot`].
#[inline(always)]
pub(super) fn dots<C: Compute, const FUSED: bool>(
    x: &[C],
    rows: &[&[C]; SIDE_BY_SIDE],
    sums: &mut [C; SIDE_BY_SIDE],
) {
    let mut all = [[C::ZERO; LANES]; SIDE_BY_SIDE];
    for first in (0..x.len()).step_by(DOT_CHUNK) {
        let chunk = first..x.len().min(first + DOT_CHUNK);
        for (row, lanes) in rows.iter().zip(&mut all) {
            fetch(row.as_ptr().wrapping_add(chunk.end), DOT_CHUNK);
            multiply::<C, FUSED>(&x[chunk.clone()], &row[chunk.clone()], lanes);
        }
    }
    for (sum, lanes) in sums.iter_mut().zip(all) {
        *sum = C::add(*sum, total(lanes));
    }
}

#[inline(always)]
fn multiply<C: Compute, const FUSED: bool>(x: &[C], y: &[C], sums: &mut [C; LANES]) {
    let mut lanes = *sums;
    let (xs, x_tail) = x.as_chunks::<LANES>();
    let (ys, y_tail) = y.as_chunks::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        for j in 0..LANES {
            lanes[j] = C::mul_add::<FUSED>(x[j], y[j], lanes[j]);
        }
    }
    *sums = lanes;
    // In `sums` and not in `lanes`: what a loop of unknown length walks over cannot stay in registers.
    for ((lane, &x), &y) in sums.iter_mut().zip(x_tail).zip(y_tail) {
        *lane = C::mul_add::<FUSED>(x, y, *lane);
    }
}

#[inline(always)]
fn total<C: Compute>(mut lanes: [C; LANES]) -> C {
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            lanes[j] = C::add(lanes[j], lanes[j + half]);
        }
        half /= 2;
    }
    lanes[0]
}
