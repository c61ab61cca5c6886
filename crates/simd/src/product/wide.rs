//! The portable loops, compiled for AVX2 and AVX-512: the kernels of the integers. The same arithmetic,
//! so the same bits as the portable ones.

#![allow(unsafe_code, reason = "compiles the portable loops for wider instructions")]

use super::compute::Compute;
use super::gemv::{GemvStream, SIDE_BY_SIDE, dot, dots, stream};
use super::portable::by_rows;
use super::{GemmLevel, MicroKernel, Tile};

/// Columns of a tile: a multiple of a vector for every dtype but the smallest.
const COLS: usize = 32;

macro_rules! compile_for {
    ($module:ident, $features:literal) => {
        mod $module {
            use super::*;

            /// # Safety
            /// As `TileFn`.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn tile<C: Compute>(t: &Tile<C>) {
                // SAFETY: the caller's promise, passed on.
                unsafe { by_rows::<C, COLS>(t) }
            }

            #[target_feature(enable = $features)]
            pub(super) fn streams<C: Compute>(s: &GemvStream<'_, C>, sums: &mut [C]) {
                stream::<C, C, false>(s, sums);
            }

            #[target_feature(enable = $features)]
            pub(super) fn dot_of_two<C: Compute>(x: &[C], y: &[C]) -> C {
                dot::<C, false>(x, y)
            }

            #[target_feature(enable = $features)]
            pub(super) fn dots_of_many<C: Compute>(
                x: &[C],
                rows: &[&[C]; SIDE_BY_SIDE],
                sums: &mut [C; SIDE_BY_SIDE],
            ) {
                dots::<C, false>(x, rows, sums);
            }
        }
    };
}

compile_for!(avx2, "avx2");

compile_for!(avx512, "avx512f,avx512bw,avx512dq,avx512vl");

/// The kernel of a dtype at a level.
pub const fn kernel<C: Compute>(level: GemmLevel) -> MicroKernel<C> {
    let (tile, stream, dot, dots) = match level {
        GemmLevel::Portable => return super::portable::kernel(),
        GemmLevel::Avx2 => (
            avx2::tile::<C> as super::TileFn<C>,
            avx2::streams::<C> as unsafe fn(&GemvStream<'_, C>, &mut [C]),
            avx2::dot_of_two::<C> as unsafe fn(&[C], &[C]) -> C,
            avx2::dots_of_many::<C> as super::DotsFn<C>,
        ),
        GemmLevel::Avx512 | GemmLevel::Amx => (
            avx512::tile::<C> as super::TileFn<C>,
            avx512::streams::<C> as unsafe fn(&GemvStream<'_, C>, &mut [C]),
            avx512::dot_of_two::<C> as unsafe fn(&[C], &[C]) -> C,
            avx512::dots_of_many::<C> as super::DotsFn<C>,
        ),
    };
    MicroKernel { cols: COLS, tile, stream, dot, dots, ..super::portable::kernel() }
}
