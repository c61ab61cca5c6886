//! Rows of 16-bit floats, widened in registers as they are read: where memory sets the pace, a copy of them as `f32` would be
//! three times as much of it.

#![allow(unsafe_code, reason = "compiles the portable loops for wider instructions")]

use super::Level;
use super::few::{Stream, stream};
use crate::linalg::gemm::compute::Reads;

/// As [`Kernel::stream`](super::Kernel::stream) at a level, which has to be available, with the same bits as of packed rows.
pub(in super::super) fn stream_widened<T: Reads<f32>>(
    level: Level,
    rows: &Stream<'_, f32, T>,
    sums: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<T: Reads<f32>>(rows: &Stream<'_, f32, T>, sums: &mut [f32]) {
            stream::<f32, T, true>(rows, sums);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        fn avx512<T: Reads<f32>>(rows: &Stream<'_, f32, T>, sums: &mut [f32]) {
            stream::<f32, T, true>(rows, sums);
        }
        match level {
            Level::Portable => {}
            // SAFETY: the level is available.
            Level::Avx2 => return unsafe { avx2(rows, sums) },
            // SAFETY: as above.
            Level::Avx512 | Level::Amx => return unsafe { avx512(rows, sums) },
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let Level::Portable = level;
    stream::<f32, T, false>(rows, sums);
}
