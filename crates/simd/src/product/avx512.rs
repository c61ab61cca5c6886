//! AVX-512: a tile of 14 rows and two vectors of columns, or of 28 rows and one; or of 9 rows and three, where there are
//! many columns.
//!
//! 28 of the 32 registers hold sums, two hold a step of `b`, and each element of `a` is broadcast once for
//! two multiply-adds: 16 loads for 28 of those. (With three vectors 12 for 27, which is 3 % faster; a product of 64 columns
//! would have a third of its tiles half empty.) Rows of `c` are stored as they lie; columns beyond
//! the tile are masked, so that a product with a few columns needs neither padding nor a copy.

#![allow(unsafe_code, reason = "AVX-512 intrinsics over the pointers of the blocked loops")]

use std::arch::x86_64::*;

use super::gemv::{GEMV_MAX, GemvStream, SIDE_BY_SIDE, dot, dots, stream};
use super::{MicroKernel, Tile, TileFn};

const ROWS: usize = 14;

/// Rows of a tile of one vector of columns.
const TALL: usize = 28;

/// A product with more than a few tiles of rows has tiles of at least that many.
const PACKING_ROWS: usize = 12;

/// Rows of a tile of three vectors of columns.
const SHORT: usize = 9;

/// The same as `PACKING_ROWS` for those.
const SHORT_PACKING_ROWS: usize = 8;

/// Steps of K for which a tile of a stream keeps its sums: that many rows of memory are read side by side.
const TOGETHER: usize = 16;

/// Rows that an address reaches from one pointer: once, twice and three times a stride.
const NEAR: usize = 4;

/// The same pointer, as one that the compiler knows nothing of. It would make the pointers of all rows one chain of
/// additions otherwise, which takes a cycle a row: as long as two vectors' multiplications, and twice as long as one's. Or,
/// where all move by one step, a pointer for each row, of which there are more than registers.
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block, reason = "nothing is read through it")]
fn apart<T>(mut pointer: *const T) -> *const T {
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!(
            "/* {0} */",
            inout(reg) pointer,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    pointer
}

/// A block for every row of a tile. In two loops: one of 28 iterations is too long for the compiler to unroll, and sums that a
/// loop walks over are in memory, not in registers.
macro_rules! each_row {
    ($i:ident of $rows:ident $body:block) => {
        for $i in 0..const { if $rows < ROWS { $rows } else { ROWS } } $body
        if const { $rows > ROWS } {
            for $i in ROWS..$rows $body
        }
    };
}

/// A block for every step of K, four of them at a time where `$by_four`: then a loop of a few iterations has few enough of
/// them that the machine foresees its end, and pointers that all move alike move once. `$u` is the step's position in its
/// group, and what follows the steps of a group is told how many those were.
///
/// Conditions are `const` blocks here and in the body: what a tile does not have is then not compiled for it, which is most of
/// the time that these tiles take to build.
macro_rules! each_step {
    ($u:ident of $steps:ident, by four if $by_four:expr, $body:block then |$moved:ident| $next:block) => {
        let mut left = $steps;
        if const { $by_four } {
            while left >= 4 {
                { const $u: isize = 0; $body }
                { const $u: isize = 1; $body }
                { const $u: isize = 2; $body }
                { const $u: isize = 3; $body }
                let $moved: isize = 4;
                $next
                left -= 4;
            }
        }
        for _ in 0..left {
            { const $u: isize = 0; $body }
            let $moved: isize = 1;
            $next
        }
    };
}

/// How `a` lies: its rows side by side,
const BY_ROWS: u8 = 0;

/// or its steps of K,
const BY_STEPS: u8 = 1;

/// or neither.
const ANYHOW: u8 = 2;

/// Tiles of two whole vectors and at least that many rows run four steps at a time: those of large products.
const BY_FOUR: usize = 8;

macro_rules! avx512 {
    (
        $name:ident, $t:ty, $vector:ty, $mask:ty, lanes $lanes:literal, block_k $block_k:literal,
        $zero:ident, $splat:ident, $load:ident, $maskz_load:ident,
        $store:ident, $mask_store:ident, $fma:ident, $add:ident
    ) => {
        pub mod $name {
            use super::*;

            /// The kernel.
            pub static KERNEL: MicroKernel<$t> = MicroKernel {
                rows: ROWS,
                tall: TALL,
                cols: 2 * $lanes,
                masks: true,
                min_packing_rows: PACKING_ROWS,
                block_k: $block_k,
                shallow: [8 * ROWS, 80 * ROWS],
                block_rows: 1120,
                block_cols: 32 * $lanes,
                streams: TALL,
                tile,
                skinny: Some(super::super::skinny::$name::tile),
                stream: streams,
                dot: dot_of_two,
                dots: dots_of_many,
                wider: Some(&WIDER),
            };

            /// The kernel for many columns.
            static WIDER: MicroKernel<$t> = MicroKernel {
                rows: SHORT,
                tall: SHORT,
                cols: 3 * $lanes,
                min_packing_rows: SHORT_PACKING_ROWS,
                block_rows: 124 * SHORT,
                block_cols: 30 * $lanes,
                tile: wider,
                wider: None,
                ..KERNEL
            };

            /// More than a few rows by tiles, whose sums stay in registers for some steps of K.
            #[target_feature(enable = "avx512f,avx512vl,fma")]
            fn streams(s: &GemvStream<'_, $t>, sums: &mut [$t]) {
                let GemvStream { count, k: k_len, len, k_stride, .. } = *s;
                if count <= GEMV_MAX || k_len == 0 {
                    return stream::<$t, $t, true>(s, sums);
                }
                // All rows lie between these two.
                let (b, _) = (s.row(0).as_ptr(), s.row(k_len - 1));
                let (a, c) = (s.thin[..count * k_len].as_ptr(), sums[..count * len].as_mut_ptr());
                let rows = count.div_ceil(count.div_ceil(ROWS));
                for k in (0..k_len).step_by(TOGETHER) {
                    for j in (0..len).step_by(2 * $lanes) {
                        for f in (0..count).step_by(rows) {
                            let call = Tile {
                                k: TOGETHER.min(k_len - k),
                                a: a.wrapping_add(k * count + f),
                                a_row: 1,
                                a_k: count as isize,
                                a_run: usize::MAX,
                                a_jump: 0,
                                a_first: usize::MAX,
                                a_period: usize::MAX,
                                a_leap: 0,
                                b: b.wrapping_offset(k as isize * k_stride).wrapping_add(j),
                                b_k: k_stride,
                                pack_to: std::ptr::null_mut(),
                                c: c.wrapping_add(f * len + j),
                                c_row: len as isize,
                                rows: rows.min(count - f),
                                cols: (2 * $lanes).min(len - j),
                                add: false,
                                onward: true,
                            };
                            // SAFETY: the instructions are there; the tile lies in slices that were checked above.
                            unsafe { tile(&call) };
                        }
                    }
                }
            }

            #[target_feature(enable = "avx512f,avx512vl,fma")]
            fn dot_of_two(x: &[$t], y: &[$t]) -> $t {
                dot::<$t, true>(x, y)
            }

            #[target_feature(enable = "avx512f,avx512vl,fma")]
            fn dots_of_many(
                x: &[$t],
                rows: &[&[$t]; SIDE_BY_SIDE],
                sums: &mut [$t; SIDE_BY_SIDE],
            ) {
                dots::<$t, true>(x, rows, sums);
            }

            /// Tiles by rows; then two whole vectors, two with a mask, one with a mask; each for rows of
            /// `a` that lie side by side, and for any; and two whole vectors for steps that lie side by side.
            static TILES: [[TileFn<$t>; 7]; ROWS] = [
                of_rows::<1>(),
                of_rows::<2>(),
                of_rows::<3>(),
                of_rows::<4>(),
                of_rows::<5>(),
                of_rows::<6>(),
                of_rows::<7>(),
                of_rows::<8>(),
                of_rows::<9>(),
                of_rows::<10>(),
                of_rows::<11>(),
                of_rows::<12>(),
                of_rows::<13>(),
                of_rows::<14>(),
            ];

            const fn of_rows<const R: usize>() -> [TileFn<$t>; 7] {
                [
                    body::<R, 2, false, BY_ROWS, false>,
                    body::<R, 2, true, BY_ROWS, false>,
                    body::<R, 1, true, BY_ROWS, false>,
                    body::<R, 2, false, ANYHOW, false>,
                    body::<R, 2, true, ANYHOW, false>,
                    body::<R, 1, true, ANYHOW, false>,
                    body::<R, 2, false, BY_STEPS, false>,
                ]
            }

            /// The same for more rows of one vector.
            static NARROW: [[TileFn<$t>; 2]; TALL - ROWS] = [
                narrow::<15>(),
                narrow::<16>(),
                narrow::<17>(),
                narrow::<18>(),
                narrow::<19>(),
                narrow::<20>(),
                narrow::<21>(),
                narrow::<22>(),
                narrow::<23>(),
                narrow::<24>(),
                narrow::<25>(),
                narrow::<26>(),
                narrow::<27>(),
                narrow::<28>(),
            ];

            const fn narrow<const R: usize>() -> [TileFn<$t>; 2] {
                [body::<R, 1, true, BY_ROWS, false>, body::<R, 1, true, ANYHOW, false>]
            }

            /// As `TILES`, for tiles that pack `b`.
            static PACKING: [[TileFn<$t>; 7]; ROWS + 1 - PACKING_ROWS] =
                [packing::<12>(), packing::<13>(), packing::<14>()];

            const fn packing<const R: usize>() -> [TileFn<$t>; 7] {
                [
                    body::<R, 2, false, BY_ROWS, true>,
                    body::<R, 2, true, BY_ROWS, true>,
                    body::<R, 1, true, BY_ROWS, true>,
                    body::<R, 2, false, ANYHOW, true>,
                    body::<R, 2, true, ANYHOW, true>,
                    body::<R, 1, true, ANYHOW, true>,
                    body::<R, 2, false, BY_STEPS, true>,
                ]
            }

            /// Tiles of three vectors by rows: whole, and with masks; each for rows of `a` that lie side by side, and for any.
            static WIDE: [[TileFn<$t>; 4]; SHORT] = [
                wide::<1, false>(),
                wide::<2, false>(),
                wide::<3, false>(),
                wide::<4, false>(),
                wide::<5, false>(),
                wide::<6, false>(),
                wide::<7, false>(),
                wide::<8, false>(),
                wide::<9, false>(),
            ];

            /// The same for tiles that pack `b`.
            static WIDE_PACKING: [[TileFn<$t>; 4]; SHORT + 1 - SHORT_PACKING_ROWS] =
                [wide::<8, true>(), wide::<9, true>()];

            const fn wide<const R: usize, const PACK: bool>() -> [TileFn<$t>; 4] {
                [
                    body::<R, 3, false, BY_ROWS, PACK>,
                    body::<R, 3, true, BY_ROWS, PACK>,
                    body::<R, 3, false, ANYHOW, PACK>,
                    body::<R, 3, true, ANYHOW, PACK>,
                ]
            }

            /// A tile of up to three vectors.
            ///
            /// # Safety
            /// As `TileFn`.
            unsafe fn wider(t: &Tile<$t>) {
                let layout = if t.a_row == 1 { 0 } else { 2 };
                let shape = usize::from(t.cols < 3 * $lanes);
                // SAFETY: as in `tile`. One that packs `b` packs a panel of three vectors.
                unsafe {
                    if !t.pack_to.is_null() {
                        WIDE_PACKING[t.rows - SHORT_PACKING_ROWS][shape + layout](t)
                    } else if t.cols > 2 * $lanes {
                        WIDE[t.rows - 1][shape + layout](t)
                    } else {
                        tile(t)
                    }
                }
            }

            /// # Safety
            /// As `TileFn`.
            unsafe fn tile(t: &Tile<$t>) {
                let layout = if t.a_row == 1 { 0 } else { 3 };
                let shape = match t.cols {
                    cols if cols == 2 * $lanes && layout != 0 && t.a_k == 1 => 3,
                    cols if cols == 2 * $lanes => 0,
                    cols if cols > $lanes => 1,
                    _ => 2,
                };
                // SAFETY: the body for the tile's shape; the caller promises the instructions and
                // the pointers.
                unsafe {
                    if t.rows > ROWS {
                        NARROW[t.rows - ROWS - 1][layout / 3](t)
                    } else if t.pack_to.is_null() {
                        TILES[t.rows - 1][shape + layout](t)
                    } else {
                        PACKING[t.rows - PACKING_ROWS][shape + layout](t)
                    }
                }
            }

            /// # Safety
            /// As `TileFn`, for a tile of the shape that the parameters say.
            #[target_feature(enable = "avx512f")]
            unsafe fn body<
                const R: usize,
                const V: usize,
                const MASKED: bool,
                const LIES: u8,
                const PACK: bool,
            >(
                t: &Tile<$t>,
            ) {
                // The columns of each vector that the tile has.
                let masks: [$mask; V] = std::array::from_fn(|v| {
                    let cols = t.cols.saturating_sub(v * $lanes).min($lanes);
                    ((1u32 << cols) - 1) as $mask
                });
                // Of two vectors the first is always whole.
                let is_cut = |v: usize| MASKED && (v == V - 1 || V == 3);
                let mut sums = [[$zero(); V]; R];
                let (mut b, mut pack_to) = (t.b, t.pack_to);
                let (a_row, near) = if LIES == BY_ROWS { (1, TALL) } else { (t.a_row, NEAR) };
                // The first of every `near` rows: from it, an address reaches the others without an addition.
                let mut a = [t.a; TALL.div_ceil(NEAR)];
                for (i, a) in a.iter_mut().enumerate() {
                    *a = apart(a.wrapping_offset((i * near) as isize * a_row));
                }
                // SAFETY: `c` has R rows and `cols` columns, `a` R rows and `k` steps, `b` `k`
                // steps and as many columns as the mask lets through, `pack_to`
                // (if at all) `k` steps of a panel. Prefetches may point anywhere.
                unsafe {
                    each_row!(i of R {
                        let c = t.c.offset(i as isize * t.c_row).cast::<i8>();
                        for v in 0..V {
                            _mm_prefetch::<_MM_HINT_T1>(c.wrapping_add(64 * v));
                        }
                    });
                    if t.onward {
                        each_row!(i of R {
                            let c = t.c.offset(i as isize * t.c_row);
                            for v in 0..V {
                                let c = c.add(v * $lanes);
                                sums[i][v] = if is_cut(v) {
                                    $maskz_load(masks[v], c)
                                } else {
                                    $load(c)
                                };
                            }
                        });
                    }
                    let (mut left, mut runs) = (t.k, t.a_first);
                    while left > 0 {
                        let run = left.min(t.a_run);
                        each_step!(U of run, by four if V >= 2 && !MASKED && R >= BY_FOUR, {
                            let mut y = [$zero(); V];
                            for v in 0..V {
                                let at = b.add(v * $lanes);
                                y[v] = if is_cut(v) {
                                    $maskz_load(masks[v], at)
                                } else {
                                    $load(at)
                                };
                                if PACK {
                                    $store(pack_to.add(v * $lanes), y[v]);
                                }
                            }
                            pack_to = pack_to.wrapping_add(if V == 3 { 3 } else { 2 } * $lanes);
                            // One vector a step follows the other, and loads are what limits such tiles.
                            if const { V >= 2 } {
                                let ahead = b.wrapping_offset(8 * t.b_k).cast::<i8>();
                                for v in 0..V {
                                    _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64 * v));
                                }
                            }
                            let step = if LIES == BY_STEPS { U } else { 0 };
                            each_row!(i of R {
                                let at = (i % near) as isize * a_row + step;
                                let x = $splat(*a[i / near].wrapping_offset(at));
                                for v in 0..V {
                                    sums[i][v] = $fma(x, y[v], sums[i][v]);
                                }
                            });
                            if const { LIES != BY_STEPS } {
                                for a in &mut a {
                                    *a = apart(a.wrapping_offset(t.a_k));
                                }
                            }
                            b = b.wrapping_offset(t.b_k);
                        } then |moved| {
                            if const { LIES == BY_STEPS } {
                                for a in &mut a {
                                    *a = apart(a.wrapping_offset(moved));
                                }
                            }
                        });
                        let jump = t.jump(&mut runs);
                        for a in &mut a {
                            *a = a.wrapping_offset(jump);
                        }
                        left -= run;
                    }
                    each_row!(i of R {
                        let c = t.c.offset(i as isize * t.c_row);
                        for v in 0..V {
                            let c = c.add(v * $lanes);
                            let mut sum = sums[i][v];
                            if is_cut(v) {
                                if t.add {
                                    sum = $add($maskz_load(masks[v], c), sum);
                                }
                                $mask_store(c, masks[v], sum);
                            } else {
                                if t.add {
                                    sum = $add($load(c), sum);
                                }
                                $store(c, sum);
                            }
                        }
                    });
                }
            }
        }
    };
}

avx512!(
    single, f32, __m512, __mmask16, lanes 16, block_k 512,
    _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_maskz_loadu_ps,
    _mm512_storeu_ps, _mm512_mask_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps
);

avx512!(
    double, f64, __m512d, __mmask8, lanes 8, block_k 256,
    _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd, _mm512_maskz_loadu_pd,
    _mm512_storeu_pd, _mm512_mask_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd
);
