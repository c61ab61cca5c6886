//! Rows of 16-bit floats, widened in registers as they are read: where memory sets the pace, a copy of them as `f32` would be
//! three times as much of it.

#![allow(unsafe_code, reason = "compiles the portable loops for wider instructions")]

use super::GemmLevel;
use super::compute::Reads;
use super::gemv::{GemvStream, stream};

/// As [`MicroKernel::stream`](super::MicroKernel::stream) at a level, with the same bits as of packed rows; portable loops where the
/// machine lacks the level.
pub fn stream_widened<T: Reads<f32>>(
    level: GemmLevel,
    rows: &GemvStream<'_, f32, T>,
    sums: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<T: Reads<f32>>(rows: &GemvStream<'_, f32, T>, sums: &mut [f32]) {
            stream::<f32, T, true>(rows, sums);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        fn avx512<T: Reads<f32>>(rows: &GemvStream<'_, f32, T>, sums: &mut [f32]) {
            stream::<f32, T, true>(rows, sums);
        }
        match if level.is_available() { level } else { GemmLevel::Portable } {
            GemmLevel::Portable => {}
            // SAFETY: the level is available.
            GemmLevel::Avx2 => return unsafe { avx2(rows, sums) },
            // SAFETY: as above.
            GemmLevel::Avx512 | GemmLevel::Amx => return unsafe { avx512(rows, sums) },
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let GemmLevel::Portable = level;
    stream::<f32, T, false>(rows, sums);
}
