//! AVX2 with FMA: a tile of 6 rows and two vectors of columns, 12 of the 16 registers.
//!
//! AVX2's masked moves are slow on some machines, so `b` is padded to whole vectors, and the columns of `c`
//! at an edge go through a small array.

#![allow(unsafe_code, reason = "AVX2 intrinsics over the pointers of the blocked loops")]

use std::arch::x86_64::*;

use super::gemv::{GEMV_MAX, GemvStream, SIDE_BY_SIDE, dot, dots, stream};
use super::{MicroKernel, Tile, TileFn};

const ROWS: usize = 6;

macro_rules! avx2 {
    (
        $name:ident, $t:ty, lanes $lanes:literal, block_k $block_k:literal,
        $zero:ident, $splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident
    ) => {
        pub mod $name {
            use super::*;

            /// The kernel.
            pub static KERNEL: MicroKernel<$t> = MicroKernel {
                rows: ROWS,
                tall: ROWS,
                cols: 2 * $lanes,
                masks: false,
                min_packing_rows: usize::MAX,
                block_k: $block_k,
                shallow: [8 * ROWS, 80 * ROWS],
                block_rows: 1024,
                block_cols: 32 * $lanes,
                streams: GEMV_MAX,
                tile,
                skinny: None,
                stream: streams,
                dot: dot_of_two,
                dots: dots_of_many,
                wider: None,
            };

            #[target_feature(enable = "avx2,fma")]
            fn streams(s: &GemvStream<'_, $t>, sums: &mut [$t]) {
                stream::<$t, $t, true>(s, sums);
            }

            #[target_feature(enable = "avx2,fma")]
            fn dot_of_two(x: &[$t], y: &[$t]) -> $t {
                dot::<$t, true>(x, y)
            }

            #[target_feature(enable = "avx2,fma")]
            fn dots_of_many(x: &[$t], rows: &[&[$t]; SIDE_BY_SIDE], sums: &mut [$t; SIDE_BY_SIDE]) {
                dots::<$t, true>(x, rows, sums);
            }

            static TILES: [[TileFn<$t>; 2]; ROWS] = [
                [body::<1, true>, body::<1, false>],
                [body::<2, true>, body::<2, false>],
                [body::<3, true>, body::<3, false>],
                [body::<4, true>, body::<4, false>],
                [body::<5, true>, body::<5, false>],
                [body::<6, true>, body::<6, false>],
            ];

            /// # Safety
            /// As `TileFn`.
            unsafe fn tile(t: &Tile<$t>) {
                let layout = if t.a_row == 1 { 0 } else { 1 };
                // SAFETY: the body for the tile's rows; the caller promises the instructions and the
                // pointers.
                unsafe { TILES[t.rows - 1][layout](t) }
            }

            /// # Safety
            /// As `TileFn`, with `R` the tile's rows.
            #[target_feature(enable = "avx2,fma")]
            unsafe fn body<const R: usize, const UNIT: bool>(t: &Tile<$t>) {
                let mut sums = [[$zero(); 2]; R];
                let (mut a, mut b) = (t.a, t.b);
                let a_row = if UNIT { 1 } else { t.a_row };
                // SAFETY: `a` has R rows and `k` steps, `b` `k` steps of two vectors; `c` has R
                // rows of `cols` columns. Prefetches may point anywhere.
                unsafe {
                    for i in 0..R {
                        let c = t.c.offset(i as isize * t.c_row).cast::<i8>();
                        _mm_prefetch::<_MM_HINT_T0>(c);
                    }
                    let (mut left, mut runs) = (t.k, t.a_first);
                    while left > 0 {
                        let run = left.min(t.a_run);
                        for _ in 0..run {
                            let y = [$load(b), $load(b.add($lanes))];
                            for i in 0..R {
                                let x = $splat(*a.offset(i as isize * a_row));
                                sums[i][0] = $fma(x, y[0], sums[i][0]);
                                sums[i][1] = $fma(x, y[1], sums[i][1]);
                            }
                            a = a.wrapping_offset(t.a_k);
                            b = b.wrapping_offset(t.b_k);
                        }
                        a = a.wrapping_offset(t.jump(&mut runs));
                        left -= run;
                    }
                    for i in 0..R {
                        let c = t.c.offset(i as isize * t.c_row);
                        if t.cols == 2 * $lanes {
                            for v in 0..2 {
                                let c = c.add(v * $lanes);
                                let sum = sums[i][v];
                                $store(c, if t.add { $add($load(c), sum) } else { sum });
                            }
                        } else {
                            let mut edge: [$t; 2 * $lanes] = [0.0; 2 * $lanes];
                            $store(edge.as_mut_ptr(), sums[i][0]);
                            $store(edge.as_mut_ptr().add($lanes), sums[i][1]);
                            let row = std::slice::from_raw_parts_mut(c, t.cols);
                            for (c, sum) in row.iter_mut().zip(edge) {
                                *c = if t.add { *c + sum } else { sum };
                            }
                        }
                    }
                }
            }
        }
    };
}

avx2!(
    single, f32, lanes 8, block_k 384,
    _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps,
    _mm256_add_ps
);

avx2!(
    double, f64, lanes 4, block_k 256,
    _mm256_setzero_pd, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd,
    _mm256_add_pd
);
