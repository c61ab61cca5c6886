//! Filters as the right operand of the matmul core: a choice of their taps, in any order, each a matrix of channels by
//! channels that may be read as its transpose.

use std::ops::Range;

use tonnage_core::lent::In;
use tonnage_ops::nn::conv::ConvSizes;

use crate::linalg::gemm::{Compute, DirectMatrix, Reads, StridedSource, pack_strided};
use crate::nn::float::Float;

/// Some taps along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taps {
    /// The first of them.
    pub first: usize,
    pub count: usize,
    /// From one to the next; may go backwards.
    pub step: isize,
}

impl Taps {
    /// Which tap is number `i` of them.
    #[inline(always)]
    pub fn at(&self, i: usize) -> usize {
        (self.first as isize + i as isize * self.step) as usize
    }
}

/// Filters.
#[derive(Clone, Copy)]
pub(super) struct Filter<'a, T> {
    data: &'a [T],
    /// The first element of the first tap, of the first group.
    start: isize,
    /// From one group to the next.
    group: isize,
    /// Along each spatial axis: how many taps, and from one to the next.
    taps: [(usize, isize); 3],
    /// From one column to the next.
    line: isize,
    /// Steps along K of one tap, and from one to the next.
    channels: usize,
    channel: isize,
}

impl<'a, T: Float> Filter<'a, T> {
    /// Channels of the result as columns; the image's along K.
    pub fn forward(filter: &'a In, known: &ConvSizes, taps: [Taps; 3]) -> Filter<'a, T> {
        let [line, channel] = Filter::<T>::inner(filter);
        let made = Filter::new(filter, known, taps);
        Filter { line: channel, channel: line, channels: known.group().0, ..made }
    }

    /// The image's channels as columns; those of the result along K.
    pub fn transposed(filter: &'a In, known: &ConvSizes, taps: [Taps; 3]) -> Filter<'a, T> {
        let [line, channel] = Filter::<T>::inner(filter);
        let made = Filter::new(filter, known, taps);
        Filter { line, channel, channels: known.group().1, ..made }
    }

    /// Strides of the image's channels and of the result's.
    fn inner(filter: &In) -> [isize; 2] {
        let strides = &filter.layout.strides;
        [strides[strides.len() - 2], strides[strides.len() - 1]]
    }

    fn new(filter: &'a In, known: &ConvSizes, taps: [Taps; 3]) -> Filter<'a, T> {
        let (layout, spatial) = (&filter.layout, known.window.spatial);
        let mut strides = [0; 3];
        strides[3 - spatial..].copy_from_slice(&layout.strides[..spatial]);
        let first: isize =
            taps.iter().zip(strides).map(|(t, stride)| t.first as isize * stride).sum();
        Filter {
            data: filter.slice::<T>(),
            start: layout.offset as isize + first,
            group: known.group().1 as isize * Filter::<T>::inner(filter)[1],
            taps: std::array::from_fn(|i| (taps[i].count, taps[i].step * strides[i])),
            line: 0,
            channels: 0,
            channel: 0,
        }
    }
}

impl<T> Filter<'_, T> {
    fn tap(&self, tap: usize) -> isize {
        let [z, y, x] = self.taps;
        let at = [tap / x.0 / y.0 % z.0, tap / x.0 % y.0, tap % x.0];
        at.iter().zip([z, y, x]).map(|(i, (_, stride))| *i as isize * stride).sum()
    }

    /// As [`GemmOperand::pack`](crate::linalg::gemm::GemmOperand::pack).
    pub fn pack<C: Compute>(
        &self,
        group: usize,
        columns: Range<usize>,
        k_range: Range<usize>,
        width: usize,
        out: &mut [C],
    ) where
        T: Reads<C>,
    {
        let panels = out.chunks_exact_mut((width * k_range.len()).max(1));
        for (first, panel) in columns.clone().step_by(width.max(1)).zip(panels) {
            let count = width.min(columns.end - first);
            let mut k = k_range.start;
            while k < k_range.end {
                let (tap, channel) = (k / self.channels, k % self.channels);
                let steps = (self.channels - channel).min(k_range.end - k);
                let start = self.start
                    + group as isize * self.group
                    + self.tap(tap)
                    + first as isize * self.line
                    + channel as isize * self.channel;
                let source = StridedSource {
                    data: self.data,
                    start,
                    mn_stride: self.line,
                    k_stride: self.channel,
                };
                let out = &mut panel[(k - k_range.start) * width..][..steps * width];
                pack_strided(&source, count, steps, width, out);
                k += steps;
            }
        }
    }

    /// Where all taps lie evenly, as those of whole filters do: read in place.
    pub fn direct<C: Compute>(&self, group: usize) -> Option<DirectMatrix<'_, C>>
    where
        T: Reads<C>,
    {
        let mut next = self.channels as isize * self.channel;
        for (count, stride) in self.taps.iter().rev().filter(|(count, _)| *count > 1) {
            if *stride != next {
                return None;
            }
            next *= *count as isize;
        }
        let start = (self.start + group as isize * self.group) as usize;
        Some(DirectMatrix {
            data: T::as_computed(self.data)?,
            start,
            mn_stride: self.line,
            k_stride: self.channel,
        })
    }
}
