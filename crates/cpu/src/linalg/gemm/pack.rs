//! Packing of strided matrices: the three ways memory can run, each with a loop that suits it.

#![allow(unsafe_code, reason = "calls loops that are compiled for wider vectors")]

use tonnage_simd::product::transpose::{PanelTranspose, TRANSPOSE_ROWS};
use tonnage_simd::product::{Compute, Reads, fetch};

use super::operand::pack_with;

#[cfg(target_arch = "x86_64")]
use tonnage_simd::product::GemmLevel;

/// A block of a strided matrix. The operand has checked that it lies in `data`.
#[derive(Debug, Clone, Copy)]
pub struct StridedSource<'a, T> {
    /// What the strides walk over.
    pub data: &'a [T],
    /// The block's first element.
    pub start: isize,
    /// From one row or column to the next.
    pub mn_stride: isize,
    /// From one step of K to the next.
    pub k_stride: isize,
}

impl<T> StridedSource<'_, T> {
    #[inline(always)]
    fn run(&self, at: isize, len: usize) -> &[T] {
        &self.data[at as usize..][..len]
    }

    /// Asks the cache for elements that are read later. Any position will do.
    #[inline(always)]
    fn fetch(&self, at: isize, len: usize) {
        fetch(self.data.as_ptr().wrapping_offset(at), len);
    }
}

/// Fills `out` as [`GemmOperand::pack`](super::GemmOperand::pack) says.
pub fn strided<C: Compute, T: Reads<C>>(
    source: &StridedSource<'_, T>,
    mn_len: usize,
    k: usize,
    width: usize,
    out: &mut [C],
) {
    #[cfg(target_arch = "x86_64")]
    {
        /// The same loops, compiled for wider vectors.
        #[target_feature(enable = "avx2,fma")]
        fn wide<C: Compute, T: Reads<C>>(
            source: &StridedSource<'_, T>,
            mn_len: usize,
            k: usize,
            width: usize,
            out: &mut [C],
        ) {
            plain(source, mn_len, k, width, out);
        }
        if GemmLevel::Avx2.is_available() {
            // SAFETY: AVX2 is there.
            return unsafe { wide(source, mn_len, k, width, out) };
        }
    }
    plain(source, mn_len, k, width, out);
}

#[inline(always)]
fn plain<C: Compute, T: Reads<C>>(
    source: &StridedSource<'_, T>,
    mn_len: usize,
    k_len: usize,
    width: usize,
    out: &mut [C],
) {
    if mn_len == 0 || k_len == 0 {
        return;
    }
    /// Elements between two prefetches.
    const RUN: usize = 128;
    /// Rows from those that are read to those that are prefetched.
    const AHEAD: isize = 4;
    if source.mn_stride == 1 {
        let done = match width {
            48 => side_by_side::<C, T, 48>(source, mn_len, k_len, out),
            32 => side_by_side::<C, T, 32>(source, mn_len, k_len, out),
            24 => side_by_side::<C, T, 24>(source, mn_len, k_len, out),
            16 => side_by_side::<C, T, 16>(source, mn_len, k_len, out),
            14 => side_by_side::<C, T, 14>(source, mn_len, k_len, out),
            9 => side_by_side::<C, T, 9>(source, mn_len, k_len, out),
            _ => 0,
        };
        by_runs(source, done, mn_len, k_len, width, &mut out[done * k_len..]);
    } else if source.k_stride == 1 && width == 1 {
        for (i, row) in out.chunks_exact_mut(k_len).take(mn_len).enumerate() {
            let at = source.start + i as isize * source.mn_stride;
            for (k, to) in (0..).step_by(RUN).zip(row.chunks_mut(RUN)) {
                source.fetch(at + k + AHEAD * source.mn_stride, to.len());
                let run = source.run(at + k, to.len());
                to.iter_mut().zip(run).for_each(|(to, from)| *to = from.read());
            }
        }
    } else if source.k_stride == 1 {
        transposed(source, mn_len, k_len, width, out);
    } else {
        pack_with(mn_len, k_len, width, out, |mn, k| {
            let at = source.start + mn as isize * source.mn_stride + k as isize * source.k_stride;
            source.data[at as usize].read()
        });
    }
}

/// An MN-major operand: whole panels of a width that the compiler knows. Some steps of K at a time: as many
/// streams of memory are read, and each panel is written in runs. (A step at a time would write to all panels one after
/// another, which share a set of the cache where their length is a power of two.) Returns how many rows or columns those are.
#[inline(always)]
fn side_by_side<C: Compute, T: Reads<C>, const W: usize>(
    source: &StridedSource<'_, T>,
    mn_len: usize,
    k_len: usize,
    out: &mut [C],
) -> usize {
    const RUN: usize = 8;
    let whole = mn_len / W;
    // Elements that need no widening are copied: the compiler would take them one by one.
    let computed = T::as_computed(source.data);
    for first in (0..k_len).step_by(RUN) {
        let steps = RUN.min(k_len - first);
        for p in 0..whole {
            let to = &mut out[(p * k_len + first) * W..][..steps * W];
            for (k, to) in to.as_chunks_mut::<W>().0.iter_mut().enumerate() {
                let at = source.start + (p * W) as isize + (first + k) as isize * source.k_stride;
                source.fetch(at + RUN as isize * source.k_stride, W);
                if let Some(data) = computed {
                    to.copy_from_slice(&data[at as usize..][..W]);
                    continue;
                }
                for (to, from) in to.iter_mut().zip(source.run(at, W)) {
                    *to = from.read();
                }
            }
        }
    }
    whole * W
}

/// An MN-major operand, panels of any width, from row or column `first` on.
#[inline(always)]
fn by_runs<C: Compute, T: Reads<C>>(
    source: &StridedSource<'_, T>,
    first: usize,
    mn_len: usize,
    k_len: usize,
    width: usize,
    out: &mut [C],
) {
    for (first, panel) in (first..mn_len).step_by(width).zip(out.chunks_exact_mut(width * k_len)) {
        let count = width.min(mn_len - first);
        for (k, to) in panel.chunks_exact_mut(width).enumerate() {
            let at = source.start + first as isize + k as isize * source.k_stride;
            for (to, from) in to.iter_mut().zip(source.run(at, count)) {
                *to = from.read();
            }
            to[count..].fill(C::ZERO);
        }
    }
}

/// A K-major operand: rows or columns are read in runs (widened on the way, where they have to be), some at a time, and
/// transposed into their panel.
#[inline(always)]
fn transposed<C: Compute, T: Reads<C>>(
    source: &StridedSource<'_, T>,
    mn_len: usize,
    k_len: usize,
    width: usize,
    out: &mut [C],
) {
    /// Steps of K in a run: the widened ones and what they become stay in L1.
    const RUN: usize = 64;
    let computed = T::as_computed(source.data);
    for (first, panel) in (0..mn_len).step_by(width).zip(out.chunks_exact_mut(width * k_len)) {
        for group in (0..width).step_by(TRANSPOSE_ROWS) {
            let count = mn_len.saturating_sub(first + group).min(width - group).min(TRANSPOSE_ROWS);
            let padded = (width - group).min(TRANSPOSE_ROWS);
            let at = |i: usize| source.start + (first + group + i) as isize * source.mn_stride;
            if let Some(data) = computed.filter(|_| count > 0) {
                let all = StridedSource { data, start: 0, mn_stride: 0, k_stride: 1 };
                let row = |i: usize| if i < count { all.run(at(i), k_len) } else { &[] };
                let rows = std::array::from_fn(row);
                let ahead = 4 * source.mn_stride;
                C::transpose(
                    &PanelTranspose { rows, count, padded, width, ahead },
                    &mut panel[group..],
                );
                continue;
            }
            for k in (0..k_len).step_by(RUN) {
                let len = RUN.min(k_len - k);
                let mut widened = [[C::ZERO; RUN]; TRANSPOSE_ROWS];
                for (i, row) in widened.iter_mut().enumerate().take(count) {
                    let run = source.run(at(i) + k as isize, len);
                    row.iter_mut().zip(run).for_each(|(to, from)| *to = from.read());
                }
                let rows = std::array::from_fn(|i| &widened[i][..len]);
                let block = PanelTranspose { rows, count, padded, width, ahead: 0 };
                C::transpose(&block, &mut panel[k * width + group..]);
            }
        }
    }
}
