//! A filter for each channel: forward, and back to the image. Vectors run along channels, and each passes by all taps of a
//! pixel before it is stored.
//!
//! The two are one loop: an output pixel's taps, with the channels that each reads. Weights are first laid out by tap
//! and output channel, in what is computed in: they are few.

use bytemuck::Pod;
use tonnage_core::lent::In;
use tonnage_core::{Bytes, DType, Result};
use tonnage_ops::nn::conv::ConvSizes;
use tonnage_simd::{Isa, SimdKernel, level};

use super::classes::AxisResidue;
use super::filter::Taps;
use super::operand::slides;
use crate::linalg::gemm::{Compute, Reads};
use crate::nn::float::{Float, Wide};
use crate::nn::window::Pixels;
use crate::workers::{Workers, for_each_chunk};

/// Channels of a vector of sums: the widest that machines have. Weights are laid out in multiples of it.
pub(super) const BLOCK: usize = 16;

/// Pixels side by side whose sums are in registers at once: each weight is read once for all of them.
const PIXELS: usize = 4;

/// Scratch as elements of one type.
pub(super) fn space<C: Pod>(scratch: &mut [u8]) -> &mut [C] {
    bytemuck::pod_align_to_mut(scratch).1
}

/// Bytes of an element in what that dtype is computed in.
pub(super) fn computed(dtype: DType) -> usize {
    if dtype == DType::F64 { 8 } else { 4 }
}

/// Weights, by tap and channel; threads share them.
pub(super) fn scratch(known: &ConvSizes, dtype: DType) -> Bytes {
    let rows = known.window.area() * (known.outputs / known.inputs).max(1);
    let row = known.inputs.max(known.outputs).next_multiple_of(BLOCK);
    Bytes::of(rows.saturating_mul(row).saturating_mul(computed(dtype)))
}

/// What output pixels are made from.
pub(super) struct Gather<'a> {
    source: &'a In<'a>,
    known: ConvSizes,
    /// To the image, rather than from it.
    back: bool,
}

impl<'a> Gather<'a> {
    /// The image's windows.
    pub fn forward(image: &'a In, known: &ConvSizes) -> Gather<'a> {
        Gather { source: image, known: *known, back: false }
    }

    /// The windows over each pixel of the image.
    pub fn to_image(values: &'a In, known: &ConvSizes) -> Gather<'a> {
        Gather { source: values, known: *known, back: true }
    }

    /// Spatial lengths and channels of what is made.
    fn made(&self) -> ([usize; 3], usize) {
        match self.back {
            true => (self.known.image, self.known.inputs),
            false => (self.known.made, self.known.outputs),
        }
    }

    /// Pixels of one remainder along an axis.
    fn remainder(&self, axis: usize, first: usize) -> AxisResidue {
        if self.back {
            return AxisResidue::of(&self.known.window.axes[axis], self.known.image[axis], first);
        }
        let slide = slides(&self.known)[axis];
        AxisResidue { first: 0, taps: Taps { first: 0, count: slide.taps, step: 1 }, slide }
    }

    /// How many remainders there are along an axis, and from one pixel to the next of its own.
    fn remainders(&self, axis: usize) -> usize {
        if self.back { self.known.window.axes[axis].stride } else { 1 }
    }

    /// Computes all of `out`.
    pub fn run<T: Float>(
        &self,
        filter: &In,
        out: &mut [T],
        scratch: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        let (lengths, channels) = self.made();
        let times = self.known.outputs / self.known.inputs;
        let reads = match self.back {
            true => Channels { divide: 1, times, count: times },
            false => Channels { divide: times.max(1), times: 1, count: 1 },
        };
        let row = channels.next_multiple_of(BLOCK);
        let weights = space::<T::Compute>(scratch);
        lay_out::<T>(filter, &reads, channels, row, weights);
        let weights = &*weights;
        let pixels = Pixels::of(&self.source.layout);
        let out_row = lengths[2] * channels;
        for_each_chunk(workers, out, out_row, &|number, out| {
            let (rest, y) = (number / lengths[1], number % lengths[1]);
            let (batch, z) = (rest / lengths[0], rest % lengths[0]);
            let (steps_z, steps_y) = (self.remainders(0), self.remainders(1));
            let (of_z, of_y) = (self.remainder(0, z % steps_z), self.remainder(1, y % steps_y));
            for first in 0..self.remainders(2).min(lengths[2]) {
                let pixel_row = DepthwiseRow {
                    data: self.source.slice::<T>(),
                    pixels: &pixels,
                    batch,
                    at: [z / steps_z, y / steps_y],
                    axes: [of_z, of_y, self.remainder(2, first)],
                    sizes: self.known.window.sizes(),
                    step: self.remainders(2),
                    reads,
                    weights,
                    row,
                    channels,
                    out,
                };
                level().run(pixel_row);
            }
        })
    }
}

/// Which channels of a source pixel an output channel reads: `channel / divide * times`, and `count` from there on.
#[derive(Clone, Copy)]
struct Channels {
    divide: usize,
    times: usize,
    count: usize,
}

/// Weights as `[tap][read][output channel]`, rows of `row` elements.
fn lay_out<T: Float>(
    filter: &In,
    reads: &Channels,
    channels: usize,
    row: usize,
    weights: &mut [T::Compute],
) {
    let (data, layout) = (filter.slice::<T>(), &filter.layout);
    let step = layout.strides[layout.strides.len() - 1];
    let taps = crate::strided::axes(layout, 0..layout.sizes.len() - 2);
    let mut rows = weights.chunks_exact_mut(row.max(1));
    for at in taps.positions() {
        for read in 0..reads.count {
            let Some(to) = rows.next() else { return };
            to[channels..].fill(T::Compute::ZERO);
            for (channel, to) in to[..channels].iter_mut().enumerate() {
                let from = channel * reads.count + read;
                *to = data[(at as isize + from as isize * step) as usize].read();
            }
        }
    }
}

/// Output pixels of one remainder along a row.
struct DepthwiseRow<'a, T: Float> {
    data: &'a [T],
    pixels: &'a Pixels,
    batch: usize,
    /// Where along depth and height, among pixels of their remainder.
    at: [usize; 2],
    axes: [AxisResidue; 3],
    /// Taps of a whole window.
    sizes: [usize; 3],
    /// From one pixel of this remainder to the next.
    step: usize,
    reads: Channels,
    weights: &'a [T::Compute],
    row: usize,
    channels: usize,
    out: &'a mut [T],
}

/// `sums[c] += xs[c] * ys[c]`. The sums of a block are a value of their own, which stays in registers from one call to the next; longer
/// arrays the compiler takes apart. Callers use loops, not `for_each` or `map`: a closure may stay a function, which has no
/// vectors and no multiply-add.
#[inline(always)]
pub(super) fn add_products<I: Isa, C, X, Y>(sums: &mut [C; BLOCK], xs: &[X; BLOCK], ys: &[Y; BLOCK])
where
    C: Wide,
    X: Reads<C>,
    Y: Reads<C>,
{
    let mut held = *sums;
    for c in 0..BLOCK {
        held[c] = xs[c].read().fma::<I>(ys[c].read(), held[c]);
    }
    *sums = held;
}

/// The same of channels that are no block.
#[inline(always)]
pub(super) fn add_rest<I: Isa, C, X, Y>(sums: &mut [C], xs: &[X], ys: &[Y])
where
    C: Wide,
    X: Reads<C>,
    Y: Reads<C>,
{
    let (xs, ys) = (&xs[..sums.len()], &ys[..sums.len()]);
    for (c, sum) in sums.iter_mut().enumerate() {
        *sum = xs[c].read().fma::<I>(ys[c].read(), *sum);
    }
}

/// Taps that are passed by at once.
const TAPS: usize = 63;

/// Some taps of a pixel: where each lies in the source, and its weights.
struct PixelTaps {
    taps: [(isize, usize); TAPS],
    count: usize,
}

impl<T: Float> DepthwiseRow<'_, T> {
    /// What pixel `x` sees, from tap number `skip` on, as far as there is room; and how many taps it sees at all.
    #[inline(always)]
    fn seen(&self, x: usize, skip: usize, seen: &mut PixelTaps) -> usize {
        let ([of_z, of_y, of_x], lengths) = (&self.axes, &self.pixels.lengths);
        let mut number = 0;
        for i in of_z.slide.taps_inside(self.at[0], lengths[0]) {
            for j in of_y.slide.taps_inside(self.at[1], lengths[1]) {
                let place = [of_z.slide.place(self.at[0], i), of_y.slide.place(self.at[1], j), 0];
                let start = self.pixels.at(self.batch, place.map(|at| at as usize));
                let row = of_z.taps.at(i) * self.sizes[1] + of_y.taps.at(j);
                for l in of_x.slide.taps_inside(x, lengths[2]) {
                    if (skip..skip + TAPS).contains(&number) {
                        let at = start + of_x.slide.place(x, l) * self.pixels.strides[2];
                        let tap = row * self.sizes[2] + of_x.taps.at(l);
                        seen.taps[number - skip] = (at, tap * self.reads.count * self.row);
                    }
                    number += 1;
                }
            }
        }
        seen.count = number.saturating_sub(skip).min(TAPS);
        number
    }

    /// Channels lie as those of the result do.
    fn is_plain(&self) -> bool {
        self.pixels.channel == 1 && self.reads.divide == 1 && self.reads.count == 1
    }

    /// Where pixel `x` of this remainder begins in the result.
    fn to(&self, x: usize) -> usize {
        (x * self.step + self.axes[2].first) * self.channels
    }

    /// All channels of `P` plain pixels from `x` on, each of which sees what the one before does, `further` on.
    #[inline(always)]
    fn plain<I: Isa, const P: usize>(
        &self,
        x: usize,
        seen: &PixelTaps,
        further: isize,
        out: &mut [T],
    ) {
        let (seen, channels) = (&seen.taps[..seen.count], self.channels);
        let mut first = 0;
        while first + BLOCK <= channels {
            let mut sums = [[T::Compute::ZERO; BLOCK]; P];
            for (at, weights) in seen {
                let Some(ys) = self.weights[weights + first..].first_chunk() else { break };
                for (p, sums) in sums.iter_mut().enumerate() {
                    let at = at + p as isize * further + first as isize;
                    let Some(xs) = self.data[at as usize..].first_chunk() else { break };
                    add_products::<I, _, _, _>(sums, xs, ys);
                }
            }
            for (p, sums) in sums.iter().enumerate() {
                T::store(sums, &mut out[self.to(x + p) + first..][..BLOCK]);
            }
            // The last block ends with the channels; some are in two then, with the same sums.
            let next = first + BLOCK;
            let last = next < channels && next + BLOCK > channels;
            first = if last { channels - BLOCK } else { next };
        }
        for p in 0..if channels < BLOCK { P } else { 0 } {
            let mut sums = [T::Compute::ZERO; BLOCK];
            let sums = &mut sums[..channels];
            for (at, weights) in seen {
                let xs = &self.data[(at + p as isize * further) as usize..];
                add_rest::<I, _, _, _>(sums, xs, &self.weights[*weights..]);
            }
            T::store(sums, &mut out[self.to(x + p)..][..channels]);
        }
    }

    /// Pixels that no edge is near, from `x` to `end`.
    #[inline(always)]
    fn inner<I: Isa>(&self, x: usize, end: usize, seen: &mut PixelTaps, out: &mut [T]) {
        let further = self.axes[2].slide.step as isize * self.pixels.strides[2];
        let mut x = x;
        while x < end {
            let count = if end - x >= PIXELS { PIXELS } else { 1 };
            match count {
                PIXELS => self.plain::<I, PIXELS>(x, seen, further, out),
                _ => self.plain::<I, 1>(x, seen, further, out),
            }
            for (at, _) in &mut seen.taps[..seen.count] {
                *at += count as isize * further;
            }
            x += count;
        }
    }

    /// All channels of a pixel that sees `all` taps, wherever they lie.
    #[inline(always)]
    fn pixel<I: Isa>(&self, x: usize, all: usize, seen: &mut PixelTaps, out: &mut [T]) {
        let (reads, step) = (&self.reads, self.pixels.channel);
        for first in (0..self.channels).step_by(BLOCK) {
            let count = BLOCK.min(self.channels - first);
            let mut sums = [T::Compute::ZERO; BLOCK];
            let sums = &mut sums[..count];
            for skip in (0..all).step_by(TAPS) {
                // A large window, piece by piece.
                if all > TAPS {
                    self.seen(x, skip, seen);
                }
                for (at, weights) in &seen.taps[..seen.count] {
                    for read in 0..reads.count {
                        let weights = &self.weights[weights + read * self.row + first..];
                        for (c, (sum, weight)) in sums.iter_mut().zip(weights).enumerate() {
                            let channel = (first + c) / reads.divide * reads.times + read;
                            let value = self.data[(at + channel as isize * step) as usize].read();
                            *sum = value.fma::<I>(*weight, *sum);
                        }
                    }
                }
            }
            T::store(sums, &mut out[self.to(x) + first..][..count]);
        }
    }
}

impl<T: Float> SimdKernel for DepthwiseRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let (slide, mut seen) = (self.axes[2].slide, PixelTaps { taps: [(0, 0); TAPS], count: 0 });
        let inner = slide.whole(0..slide.taps, self.pixels.lengths[2], 0..slide.windows);
        let (plain, out) = (self.is_plain(), std::mem::take(&mut self.out));
        let mut x = 0;
        while x < slide.windows {
            let all = self.seen(x, 0, &mut seen);
            match plain && all <= TAPS {
                true if inner.contains(&x) => {
                    self.inner::<I>(x, inner.end, &mut seen, out);
                    x = inner.end;
                    continue;
                }
                true => self.plain::<I, 1>(x, &seen, 0, out),
                false => self.pixel::<I>(x, all, &mut seen, out),
            }
            x += 1;
        }
    }
}
