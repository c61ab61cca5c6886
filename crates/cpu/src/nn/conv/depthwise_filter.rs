//! A filter for each channel: the gradient of the filters. Each tap adds up, over all windows, what it saw times what
//! the window gave.
//!
//! Windows are cut into a number of parts that follows from their number alone. Each part has sums of its own, which
//! are added in order: the same bits at any number of threads.

use tonnage_core::lent::In;
use tonnage_core::{Bytes, DType, Result};
use tonnage_ops::nn::conv::ConvSizes;
use tonnage_simd::{Isa, SimdKernel, level};

use super::depthwise::{BLOCK, add_products, add_rest, computed, space};
use super::operand::slides;
use super::slide::Slide;
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide};
use crate::nn::window::Pixels;
use crate::workers::{Workers, for_each_chunk};

/// The most parts.
const PARTS: usize = 16;

/// The most channels whose sums are in registers while windows pass by: one block alone would wait for its own last sum.
const WIDE: usize = 4 * BLOCK;

/// Channels as `(first, count, done)`: the most blocks at once that there are. The last ends with the channels, and the first ones of it
/// are done already.
fn blocks(channels: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    const TWO: usize = 2 * BLOCK;
    let mut first = 0;
    std::iter::from_fn(move || {
        let left = channels - first;
        let count = match left {
            0 => return None,
            WIDE.. => WIDE,
            TWO.. => TWO,
            _ => BLOCK.min(channels),
        };
        let done = count.saturating_sub(left);
        first += count - done;
        Some((first - count, count, done))
    })
}

fn row(known: &ConvSizes) -> usize {
    known.outputs.next_multiple_of(BLOCK)
}

/// Rows of windows, over all images.
fn window_rows(known: &ConvSizes) -> usize {
    known.batch * known.made[0] * known.made[1]
}

fn parts(known: &ConvSizes) -> usize {
    window_rows(known).clamp(1, PARTS)
}

/// Sums of all parts.
pub(super) fn scratch(known: &ConvSizes, dtype: DType) -> Bytes {
    let sums = known.window.area().saturating_mul(row(known));
    Bytes::of(sums.saturating_mul(parts(known)).saturating_mul(computed(dtype)))
}

/// An image and what its windows gave.
pub(super) struct DepthwiseFilterGrad<'a, T> {
    image: &'a [T],
    pixels: Pixels,
    values: &'a [T],
    made: Pixels,
    known: ConvSizes,
    slides: [Slide; 3],
}

impl<'a, T: Float> DepthwiseFilterGrad<'a, T> {
    pub fn of(image: &'a In, values: &'a In, known: ConvSizes) -> DepthwiseFilterGrad<'a, T> {
        DepthwiseFilterGrad {
            image: image.slice::<T>(),
            pixels: Pixels::of(&image.layout),
            values: values.slice::<T>(),
            made: Pixels::of(&values.layout),
            slides: slides(&known),
            known,
        }
    }

    /// Computes all of `out`, a row of channels for each tap.
    pub fn run(&self, out: &mut [T], scratch: &mut [u8], workers: &dyn Workers) -> Result<()> {
        let (taps, row) = (self.known.window.area(), row(&self.known));
        let (parts, window_rows) = (parts(&self.known), window_rows(&self.known));
        if taps * row == 0 {
            return Ok(());
        }
        let sums = &mut space::<T::Compute>(scratch)[..parts * taps * row];
        for_each_chunk(workers, sums, taps * row, &|part, sums| {
            sums.fill(T::Compute::ZERO);
            for window_row in part * window_rows / parts..(part + 1) * window_rows / parts {
                if workers.is_stopped() {
                    return;
                }
                level().run(WindowRow { of: self, window_row, row, sums });
            }
        })?;
        let (first, others) = sums.split_at_mut(taps * row);
        for part in others.chunks_exact(taps * row) {
            first.iter_mut().zip(part).for_each(|(a, b)| *a = T::Compute::add(*a, *b));
        }
        let channels = self.known.outputs.max(1);
        for (to, sums) in out.chunks_exact_mut(channels).zip(first.chunks_exact(row.max(1))) {
            T::store(&sums[..channels], to);
        }
        Ok(())
    }
}

/// One row of windows.
struct WindowRow<'a, 's, T: Float> {
    of: &'a DepthwiseFilterGrad<'a, T>,
    window_row: usize,
    row: usize,
    sums: &'s mut [T::Compute],
}

impl<T: Float> SimdKernel for WindowRow<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let WindowRow { of, window_row, row, sums } = self;
        let (known, [zs, ys, xs]) = (&of.known, of.slides);
        let (rest, y) = (window_row / known.made[1], window_row % known.made[1]);
        let (batch, z) = (rest / known.made[0], rest % known.made[0]);
        let (times, lengths) = (known.outputs / known.inputs, of.pixels.lengths);
        let given = of.made.at(batch, [z, y, 0]);
        let (step, next) = (xs.step as isize * of.pixels.strides[2], of.made.strides[2]);
        for (first, count, done) in blocks(known.outputs) {
            for i in zs.taps_inside(z, lengths[0]) {
                for j in ys.taps_inside(y, lengths[1]) {
                    let place = [zs.place(z, i) as usize, ys.place(y, j) as usize, 0];
                    let start = of.pixels.at(batch, place);
                    for l in 0..xs.taps {
                        let whole = xs.whole(l..l + 1, lengths[2], 0..xs.windows);
                        let seen = (start + xs.place(whole.start, l) * of.pixels.strides[2], step);
                        let gave = (given + whole.start as isize * next, next);
                        let mut lanes = [T::Compute::ZERO; WIDE];
                        let windows = WindowRun { seen, gave, count: whole.len(), times, first };
                        of.add::<I>(&windows, &mut lanes[..count]);
                        let tap = (i * ys.taps + j) * xs.taps + l;
                        let sums = &mut sums[tap * row + first..][done..count];
                        for (sum, lane) in sums.iter_mut().zip(&lanes[done..]) {
                            *sum = *sum + *lane;
                        }
                    }
                }
            }
        }
    }
}

/// Windows side by side: where a tap of the first lies, and from one to the next; the same of what they gave.
struct WindowRun {
    seen: (isize, isize),
    gave: (isize, isize),
    count: usize,
    /// Filters for each channel.
    times: usize,
    /// The first channel of what they gave.
    first: usize,
}

impl<T: Float> DepthwiseFilterGrad<'_, T> {
    /// Adds what one tap of some windows saw, times what the windows gave.
    #[inline(always)]
    fn add<I: Isa>(&self, windows: &WindowRun, sums: &mut [T::Compute]) {
        let WindowRun { seen, gave, count, times, first } = *windows;
        if (self.pixels.channel, self.made.channel, times) == (1, 1, 1) {
            match sums.as_chunks_mut() {
                ([a, b, c, d], []) => return self.whole::<I, 4>(windows, [a, b, c, d]),
                ([a, b], []) => return self.whole::<I, 2>(windows, [a, b]),
                ([a], []) => return self.whole::<I, 1>(windows, [a]),
                _ => {}
            }
            for x in 0..count {
                let (xs, ys) = self.side_by_side(windows, x);
                add_rest::<I, _, _, _>(sums, xs, ys);
            }
            return;
        }
        for x in 0..count as isize {
            for (c, sum) in sums.iter_mut().enumerate() {
                let (of_image, of_made) = (((first + c) / times) as isize, (first + c) as isize);
                let saw = seen.0 + x * seen.1 + of_image * self.pixels.channel;
                let made = gave.0 + x * gave.1 + of_made * self.made.channel;
                let (saw, made) = (self.image[saw as usize], self.values[made as usize]);
                *sum = saw.read().fma::<I>(made.read(), *sum);
            }
        }
    }

    /// The same for whole blocks of channels that lie side by side.
    #[inline(always)]
    fn whole<I: Isa, const V: usize>(
        &self,
        windows: &WindowRun,
        sums: [&mut [T::Compute; BLOCK]; V],
    ) {
        let mut held = sums.each_ref().map(|sums| **sums);
        for x in 0..windows.count {
            let (xs, ys) = self.side_by_side(windows, x);
            let (xs, ys) = (xs[..V * BLOCK].as_chunks().0, ys[..V * BLOCK].as_chunks().0);
            for (held, (xs, ys)) in held.iter_mut().zip(xs.iter().zip(ys)) {
                add_products::<I, _, _, _>(held, xs, ys);
            }
        }
        for (sums, held) in sums.into_iter().zip(held) {
            *sums = held;
        }
    }

    /// What a window's tap saw and what the window gave, from the first channel on.
    #[inline(always)]
    fn side_by_side(&self, windows: &WindowRun, window: usize) -> (&[T], &[T]) {
        let WindowRun { seen, gave, first, .. } = *windows;
        let (x, first) = (window as isize, first as isize);
        let (saw, made) = (seen.0 + x * seen.1 + first, gave.0 + x * gave.1 + first);
        (&self.image[saw as usize..], &self.values[made as usize..])
    }
}
