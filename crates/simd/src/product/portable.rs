//! The micro-kernel of every machine and every dtype: plain loops over arrays that fit in registers,
//! left to the compiler to vectorize. Products are rounded before they are added (no fused
//! multiply-add: without hardware for it that is a function call), integers wrap.

#![allow(unsafe_code, reason = "reads and writes tiles through the pointers of the blocked loops")]

use super::compute::Compute;
use super::gemv::{GEMV_MAX, GemvStream, SIDE_BY_SIDE, dot, dots, stream};
use super::{MicroKernel, Tile};

/// Rows of a tile.
pub(super) const ROWS: usize = 4;

/// Columns of a tile: two SSE or NEON vectors of `f32`.
const COLS: usize = 8;

/// The kernel of a dtype.
pub const fn kernel<C: Compute>() -> MicroKernel<C> {
    MicroKernel {
        rows: ROWS,
        tall: ROWS,
        cols: COLS,
        masks: false,
        min_packing_rows: usize::MAX,
        block_k: 256,
        shallow: [8 * ROWS, 80 * ROWS],
        block_rows: 512,
        block_cols: 128,
        streams: GEMV_MAX,
        tile: tile::<C, COLS>,
        skinny: None,
        stream: plain_stream::<C>,
        dot: plain_dot::<C>,
        dots: plain_dots::<C>,
        wider: None,
    }
}

fn plain_stream<C: Compute>(s: &GemvStream<'_, C>, sums: &mut [C]) {
    stream::<C, C, false>(s, sums);
}

fn plain_dot<C: Compute>(x: &[C], y: &[C]) -> C {
    dot::<C, false>(x, y)
}

fn plain_dots<C: Compute>(x: &[C], rows: &[&[C]; SIDE_BY_SIDE], sums: &mut [C; SIDE_BY_SIDE]) {
    dots::<C, false>(x, rows, sums);
}

/// # Safety
/// As `TileFn`.
unsafe fn tile<C: Compute, const N: usize>(t: &Tile<C>) {
    // SAFETY: the caller's promise, passed on.
    unsafe { by_rows::<C, N>(t) }
}

/// Picks the body for the tile's number of rows.
///
/// # Safety
/// As `TileFn`, with `N` readable columns of `b`.
#[inline(always)]
pub(super) unsafe fn by_rows<C: Compute, const N: usize>(t: &Tile<C>) {
    // SAFETY: the caller's promise, passed on; `R` is the tile's number of rows.
    unsafe {
        match t.rows {
            1 => body::<C, 1, N>(t),
            2 => body::<C, 2, N>(t),
            3 => body::<C, 3, N>(t),
            _ => body::<C, ROWS, N>(t),
        }
    }
}

/// # Safety
/// As `TileFn`, with `R` the tile's rows and `N` readable columns of `b`.
#[inline(always)]
unsafe fn body<C: Compute, const R: usize, const N: usize>(t: &Tile<C>) {
    let mut sums = [[C::ZERO; N]; R];
    let (mut a, mut b, mut left) = (t.a, t.b, t.k);
    let mut runs = t.a_first;
    while left > 0 {
        let run = left.min(t.a_run);
        for _ in 0..run {
            // SAFETY: `b` has `N` columns at every step of K.
            let y = unsafe { b.cast::<[C; N]>().read_unaligned() };
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: row `i` is one of the tile's.
                let x = unsafe { *a.offset(i as isize * t.a_row) };
                for j in 0..N {
                    sums[j] = C::mul_add::<false>(x, y[j], sums[j]);
                }
            }
            a = a.wrapping_offset(t.a_k);
            b = b.wrapping_offset(t.b_k);
        }
        a = a.wrapping_offset(t.jump(&mut runs));
        left -= run;
    }
    for (i, sums) in sums.iter().enumerate() {
        // SAFETY: row `i` of the tile has `cols` elements, which nobody else holds.
        let row =
            unsafe { std::slice::from_raw_parts_mut(t.c.offset(i as isize * t.c_row), t.cols) };
        for (c, &sum) in row.iter_mut().zip(sums) {
            *c = if t.add { C::add(*c, sum) } else { sum };
        }
    }
}
