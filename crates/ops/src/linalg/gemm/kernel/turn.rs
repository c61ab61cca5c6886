//! Transposing runs of lines into a panel: what packing spends its time on where depth runs along memory.

#![allow(unsafe_code, reason = "AVX-512 intrinsics behind a safe function")]

use crate::linalg::gemm::compute::Compute;

/// Lines that are transposed at once.
pub(in super::super) const LINES: usize = 16;

/// Lines of one length, side by side: element `k` of line `i` goes to `out[k * width + i]`, and zeros to the lines
/// from `count` up to `keep`. Entries of `lines` from `count` on are not looked at.
pub(in super::super) struct Turn<'a, C> {
    pub lines: [&'a [C]; LINES],
    pub count: usize,
    /// At most [`LINES`].
    pub keep: usize,
    pub width: usize,
    /// How far on memory is read next, in elements: what to fetch ahead.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "vector kernels read it"))]
    pub ahead: isize,
}

impl<C: Compute> Turn<'_, C> {
    /// Plain loops, from step `from` of depth on.
    pub fn plain(&self, from: usize, out: &mut [C]) {
        let depth = self.lines[0].len();
        for (k, out) in (from..depth).zip(out.chunks_mut(self.width).skip(from)) {
            for (i, out) in out.iter_mut().enumerate().take(self.keep) {
                *out = if i < self.count { self.lines[i][k] } else { C::ZERO };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! avx512 {
    (
        $name:ident, $t:ty, $mask:ty, group $group:literal, step $step:literal,
        |$x:ident| $turn:expr, $load:ident, $extract:ident, $store:ident, $mask_store:ident
    ) => {
        /// As [`Turn::plain`] from 0, by vectors.
        pub(in crate::linalg::gemm) fn $name(turn: &Turn<'_, $t>, out: &mut [$t]) {
            let depth = turn.lines[0].len();
            let inside = turn.keep <= turn.width.min(LINES)
                && turn.lines[..turn.count].iter().all(|line| line.len() == depth)
                && depth > 0
                && out.len() >= (depth - 1) * turn.width + turn.keep;
            if !inside || !Level::Avx512.is_available() {
                return turn.plain(0, out);
            }
            let steps = depth / $step * $step;
            for first in (0..turn.keep).step_by($group) {
                let keep = turn.keep - first;
                // SAFETY: AVX-512 is there; lines have `depth` elements, and every row of `out` has `keep`.
                unsafe {
                    if keep >= $group {
                        group::<true>(turn, first, u8::MAX, steps, out.as_mut_ptr().add(first));
                    } else {
                        let keep = (1 << keep) - 1;
                        group::<false>(turn, first, keep, steps, out.as_mut_ptr().add(first));
                    }
                }
            }
            turn.plain(steps, out);

            /// # Safety
            /// The machine has these instructions. Lines have at least `steps` elements. From `out` on, every step
            /// has room for a whole group, or for the lines that `keep` marks where not `WHOLE`.
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            unsafe fn group<const WHOLE: bool>(
                turn: &Turn<'_, $t>,
                first: usize,
                keep: u8,
                steps: usize,
                out: *mut $t,
            ) {
                let lines: [(*const $t, $mask); $group] = std::array::from_fn(|i| {
                    let i = first + i;
                    if i < turn.count {
                        (turn.lines[i].as_ptr(), <$mask>::MAX)
                    } else {
                        (turn.lines[0].as_ptr(), 0)
                    }
                });
                let mut out = out;
                for k in (0..steps).step_by($step) {
                    // SAFETY: `k + step` is at most the lines' length; the mask keeps the stores in `out`.
                    // Prefetches may point anywhere.
                    unsafe {
                        let $x: [_; $group] = std::array::from_fn(|i| {
                            let (line, valid) = lines[i];
                            let next = line.add(k).wrapping_offset(turn.ahead);
                            _mm_prefetch::<_MM_HINT_T0>(next.cast::<i8>());
                            $load(valid, line.add(k))
                        });
                        let turned = $turn;
                        let mut put = |part| {
                            if WHOLE {
                                $store(out, part);
                            } else {
                                $mask_store(out, keep, part);
                            }
                            out = out.wrapping_add(turn.width);
                        };
                        turned.iter().for_each(|&v| put($extract::<0>(v)));
                        turned.iter().for_each(|&v| put($extract::<1>(v)));
                        turned.iter().for_each(|&v| put($extract::<2>(v)));
                        turned.iter().for_each(|&v| put($extract::<3>(v)));
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LINES, Turn};
    use crate::linalg::gemm::kernel::Level;

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

#[cfg(target_arch = "x86_64")]
pub(in super::super) use x86::{double, single};
