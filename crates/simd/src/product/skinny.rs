//! AVX-512: tiles of at most [`GEMV_MAX`] columns, with vectors along K.
//!
//! A vector of columns would be mostly empty. Where `a` is K-major, sums of some rows and all columns
//! are a vector each, whose lanes are added up at the end: a step loads a vector of every row and of every column, and
//! multiplies each with each. (With the shorter vectors of `avx512vl`: without them the sums whose lanes are added up could be
//! in half of the registers alone.)

#![allow(unsafe_code, reason = "AVX-512 intrinsics over the pointers of the blocked loops")]

use std::arch::x86_64::*;

use super::Tile;
use super::gemv::GEMV_MAX;

/// Distance in bytes at which rows of `a` are prefetched: from memory, they are more streams than the machine foresees.
const AHEAD: usize = 512;

/// Rows whose sums stay in registers, by columns: at most 24 sums.
const ROWS: [usize; GEMV_MAX] = [8, 8, 8, 6];

macro_rules! skinny {
    (
        $name:ident, $t:ty, $mask:ty, lanes $lanes:literal,
        $zero:ident, $load:ident, $maskz_load:ident, $fma:ident, $reduce:ident
    ) => {
        pub(super) mod $name {
            use super::*;

            /// A tile of any rows, at most `GEMV_MAX` columns, whose `a` lies along K in runs. `b` has a run for each
            /// column, so that `b_k` leads from one column to the next.
            ///
            /// # Safety
            /// As `TileFn`, `b` being as said.
            #[target_feature(enable = "avx512f,avx512vl")]
            pub unsafe fn tile(t: &Tile<$t>) {
                // SAFETY: the caller's promise, passed on.
                unsafe {
                    match t.cols {
                        1 => columns::<1, { ROWS[0] }>(t),
                        2 => columns::<2, { ROWS[1] }>(t),
                        3 => columns::<3, { ROWS[2] }>(t),
                        _ => columns::<4, { ROWS[3] }>(t),
                    }
                }
            }

            /// # Safety
            /// As `tile`, for `F` columns.
            #[target_feature(enable = "avx512f,avx512vl")]
            unsafe fn columns<const F: usize, const R: usize>(t: &Tile<$t>) {
                let mut row = 0;
                // SAFETY: the caller's promise, for rows that the tile has.
                unsafe {
                    while row + R <= t.rows {
                        rows::<F, R>(t, row);
                        row += R;
                    }
                    while row + 2 <= t.rows {
                        rows::<F, 2>(t, row);
                        row += 2;
                    }
                    if row < t.rows {
                        rows::<F, 1>(t, row);
                    }
                }
            }

            /// # Safety
            /// As `tile`, for `F` columns and at least `R` rows from `row` on.
            #[target_feature(enable = "avx512f,avx512vl")]
            unsafe fn rows<const F: usize, const R: usize>(t: &Tile<$t>, row: usize) {
                let mut sums = [[$zero(); F]; R];
                let mut a = t.a.wrapping_offset(row as isize * t.a_row);
                let (mut b, mut left, mut runs) = (t.b, t.k, t.a_first);
                // SAFETY: every row of `a` has `run` elements in a run, and every column of `b` as many from there on.
                unsafe {
                    while left > 0 {
                        let run = left.min(t.a_run);
                        let (whole, rest) = (run / $lanes, run % $lanes);
                        for _ in 0..whole {
                            let y: [_; F] =
                                std::array::from_fn(|f| $load(b.offset(f as isize * t.b_k)));
                            for i in 0..R {
                                let from = a.offset(i as isize * t.a_row);
                                _mm_prefetch::<_MM_HINT_T0>(from.cast::<i8>().wrapping_add(AHEAD));
                                let x = $load(from);
                                for f in 0..F {
                                    sums[i][f] = $fma(x, y[f], sums[i][f]);
                                }
                            }
                            (a, b) = (a.wrapping_add($lanes), b.wrapping_add($lanes));
                        }
                        if rest > 0 {
                            let mask: $mask = (1 << rest) - 1;
                            let y: [_; F] = std::array::from_fn(|f| {
                                $maskz_load(mask, b.offset(f as isize * t.b_k))
                            });
                            for i in 0..R {
                                let x = $maskz_load(mask, a.offset(i as isize * t.a_row));
                                for f in 0..F {
                                    sums[i][f] = $fma(x, y[f], sums[i][f]);
                                }
                            }
                            (a, b) = (a.wrapping_add(rest), b.wrapping_add(rest));
                        }
                        a = a.wrapping_offset(t.jump(&mut runs));
                        left -= run;
                    }
                    for i in 0..R {
                        let c = t.c.offset((row + i) as isize * t.c_row);
                        for f in 0..F {
                            let sum = $reduce(sums[i][f]);
                            *c.add(f) = if t.add { *c.add(f) + sum } else { sum };
                        }
                    }
                }
            }
        }
    };
}

skinny!(
    single, f32, __mmask16, lanes 16,
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_maskz_loadu_ps, _mm512_fmadd_ps, _mm512_reduce_add_ps
);

skinny!(
    double, f64, __mmask8, lanes 8,
    _mm512_setzero_pd, _mm512_loadu_pd, _mm512_maskz_loadu_pd, _mm512_fmadd_pd, _mm512_reduce_add_pd
);
