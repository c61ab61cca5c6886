//! Transposing rows into a panel: what packing spends its time on where an operand is K-major.

#![allow(unsafe_code, reason = "AVX-512 intrinsics behind a safe function")]

use super::compute::Compute;

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{double, single};

/// Rows that are transposed at once.
pub const TRANSPOSE_ROWS: usize = 16;

/// Rows of one length: element `k` of row `i` goes to `out[k * width + i]`, and zeros to the rows
/// from `count` up to `padded`. Entries of `rows` from `count` on are not looked at.
pub struct PanelTranspose<'a, C> {
    /// The rows.
    pub rows: [&'a [C]; TRANSPOSE_ROWS],
    /// How many there are.
    pub count: usize,
    /// At most [`TRANSPOSE_ROWS`].
    pub padded: usize,
    /// From one step of K to the next in the panel.
    pub width: usize,
    /// How far on memory is read next, in elements: what to fetch ahead.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "vector kernels read it"))]
    pub ahead: isize,
}

impl<C: Compute> PanelTranspose<'_, C> {
    /// Plain loops, from step `from` of K on.
    pub fn plain(&self, from: usize, out: &mut [C]) {
        let k_len = self.rows[0].len();
        for (k, out) in (from..k_len).zip(out.chunks_mut(self.width).skip(from)) {
            for (i, out) in out.iter_mut().enumerate().take(self.padded) {
                *out = if i < self.count { self.rows[i][k] } else { C::ZERO };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! avx512 {
    (
        $name:ident, $t:ty, $mask:ty, group $group:literal, step $step:literal,
        |$x:ident| $transpose:expr, $load:ident, $extract:ident, $store:ident, $mask_store:ident
    ) => {
        /// As [`PanelTranspose::plain`] from 0, by vectors.
        pub(in super::super) fn $name(block: &PanelTranspose<'_, $t>, out: &mut [$t]) {
            let k_len = block.rows[0].len();
            let inside = block.padded <= block.width.min(TRANSPOSE_ROWS)
                && block.rows[..block.count].iter().all(|row| row.len() == k_len)
                && k_len > 0
                && out.len() >= (k_len - 1) * block.width + block.padded;
            if !inside || !GemmLevel::Avx512.is_available() {
                return block.plain(0, out);
            }
            let steps = k_len / $step * $step;
            for first in (0..block.padded).step_by($group) {
                let padded = block.padded - first;
                // SAFETY: AVX-512 is there; rows have `k_len` elements, and every row of `out` has `padded`.
                unsafe {
                    if padded >= $group {
                        group::<true>(block, first, u8::MAX, steps, out.as_mut_ptr().add(first));
                    } else {
                        let padded = (1 << padded) - 1;
                        group::<false>(block, first, padded, steps, out.as_mut_ptr().add(first));
                    }
                }
            }
            block.plain(steps, out);

            /// # Safety
            /// The machine has these instructions. Rows have at least `steps` elements. From `out` on, every step
            /// has room for a whole group, or for the rows that `padded` marks where not `WHOLE`.
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            unsafe fn group<const WHOLE: bool>(
                block: &PanelTranspose<'_, $t>,
                first: usize,
                padded: u8,
                steps: usize,
                out: *mut $t,
            ) {
                let rows: [(*const $t, $mask); $group] = std::array::from_fn(|i| {
                    let i = first + i;
                    if i < block.count {
                        (block.rows[i].as_ptr(), <$mask>::MAX)
                    } else {
                        (block.rows[0].as_ptr(), 0)
                    }
                });
                let mut out = out;
                for k in (0..steps).step_by($step) {
                    // SAFETY: `k + step` is at most the rows' length; the mask keeps the stores in `out`.
                    // Prefetches may point anywhere.
                    unsafe {
                        let $x: [_; $group] = std::array::from_fn(|i| {
                            let (row, valid) = rows[i];
                            let next = row.add(k).wrapping_offset(block.ahead);
                            _mm_prefetch::<_MM_HINT_T0>(next.cast::<i8>());
                            $load(valid, row.add(k))
                        });
                        let transposed = $transpose;
                        let mut put = |part| {
                            if WHOLE {
                                $store(out, part);
                            } else {
                                $mask_store(out, padded, part);
                            }
                            out = out.wrapping_add(block.width);
                        };
                        transposed.iter().for_each(|&v| put($extract::<0>(v)));
                        transposed.iter().for_each(|&v| put($extract::<1>(v)));
                        transposed.iter().for_each(|&v| put($extract::<2>(v)));
                        transposed.iter().for_each(|&v| put($extract::<3>(v)));
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::GemmLevel;
    use super::{PanelTranspose, TRANSPOSE_ROWS};

    // A cache line of a few lines at a time: where lines are a power of two apart they share a set of the cache,
    // and would push each other out if more were read in turn. Vectors are transposed within their quarters, and
    // stored by quarters.
    avx512!(
        single, f32, __mmask16, group 4, step 16,
        |x| {
            let low = (_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpacklo_ps(x[2], x[3]));
            let high = (_mm512_unpackhi_ps(x[0], x[1]), _mm512_unpackhi_ps(x[2], x[3]));
            [
                _mm512_shuffle_ps::<0b01_00_01_00>(low.0, low.1),
                _mm512_shuffle_ps::<0b11_10_11_10>(low.0, low.1),
                _mm512_shuffle_ps::<0b01_00_01_00>(high.0, high.1),
                _mm512_shuffle_ps::<0b11_10_11_10>(high.0, high.1),
            ]
        },
        _mm512_maskz_loadu_ps, _mm512_extractf32x4_ps, _mm_storeu_ps, _mm_mask_storeu_ps
    );

    avx512!(
        double, f64, __mmask8, group 2, step 8,
        |x| [_mm512_unpacklo_pd(x[0], x[1]), _mm512_unpackhi_pd(x[0], x[1])],
        _mm512_maskz_loadu_pd, _mm512_extractf64x2_pd, _mm_storeu_pd, _mm_mask_storeu_pd
    );
}
