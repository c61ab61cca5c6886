//! The kernel of `group_norm`. Statistics are found tile by tile, each twice while it is in cache, and joined by
//! counts, means and sums of squared differences: images are read once for them and once to be normalized.

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, Element};
use tonnage_ops::nn::norm::group::NAME;
use tonnage_ops::nn::norm::{NormSpec, computed, how};
use tonnage_simd::{Isa, SimdKernel, level};

use super::images::{BLOCK, ImageSplit, Images, bytes, channel_numbers, gathered, repeated};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::StridedRows;
use crate::parallel::{cut, for_each_item};

/// The kernel of [`GROUP_NORM`](tonnage_ops::nn::norm::group::GROUP_NORM).
pub static GROUP_NORM: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Elements of a thread's scratch: a tile, and three numbers for each channel besides two that are in the making.
fn parts_of(of: &Images) -> [usize; 6] {
    let channels = of.channels;
    [of.tile() * channels, channels, channels, channels, channels, channels]
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(of) = Images::of_types(NAME, call) else { return Bytes::ZERO };
    let computed = computed(call.inputs[0].dtype);
    let slot: usize = parts_of(&of).iter().map(|count| bytes(computed, *count)).sum();
    let parts = ImageSplit::of(&of);
    let sums = match parts {
        ImageSplit::Whole { .. } => 0,
        ImageSplit::Parts { .. } => bytes(computed, 2 * of.channels * parts.count(&of)),
    };
    Bytes::of(slot.saturating_mul(threads).saturating_add(sums))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

/// What normalizing reads besides the image.
struct GroupNormInputs<'a, T> {
    of: Images,
    how: NormSpec,
    x: StridedRows<'a, T>,
    scale: StridedRows<'a, T>,
    bias: StridedRows<'a, T>,
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let how = how(NAME, k.attrs)?;
    let of = Images::of_sizes(&k.inputs[0].layout.sizes, how.groups);
    let [x, scale, bias] = [0, 1, 2].map(|i| StridedRows::<T>::of(&k.inputs[i]));
    let all = GroupNormInputs { of, how, x, scale, bias };
    let [out, means, variances] = &mut k.outputs[..] else { return Ok(()) };
    let out = out.slice::<T>();
    let (means, variances) = (means.slice::<T::Compute>(), variances.slice::<T::Compute>());
    if out.is_empty() {
        // No number has a mean.
        means.fill(T::Compute::of(f64::NAN));
        variances.fill(T::Compute::of(f64::NAN));
        return Ok(());
    }
    let size: usize = parts_of(&of).iter().map(|n| bytes(<T::Compute as Element>::DTYPE, *n)).sum();
    let parts = ImageSplit::of(&of);
    if let ImageSplit::Whole { images } = parts {
        let stats =
            means.chunks_mut(images * of.groups).zip(variances.chunks_mut(images * of.groups));
        let items = out.chunks_mut(images * of.image()).zip(stats).enumerate();
        return for_each_item(k.workers, items, k.scratch, size, &|(part, (out, stats)), slot| {
            let (means, variances) = stats;
            let each = means.chunks_exact_mut(of.groups).zip(variances.chunks_exact_mut(of.groups));
            for ((i, out), (means, variances)) in
                out.chunks_exact_mut(of.image()).enumerate().zip(each)
            {
                all.image(part * images + i, out, means, variances, slot);
            }
            Ok(())
        });
    }
    let mut rest = &mut *k.scratch;
    let sums = cut::<T::Compute>(&mut rest, 2 * of.channels * parts.count(&of));
    let items = sums.chunks_mut(2 * of.channels).enumerate();
    for_each_item(k.workers, items, rest, size, &|(part, sums), slot| {
        let (mean, square) = sums.split_at_mut(of.channels);
        let mut rest = slot;
        let [buffer, tile_mean, tile_square, ..] =
            parts_of(&of).map(|count| cut::<T::Compute>(&mut rest, count));
        all.moments(parts.rows(&of, part), [buffer, tile_mean, tile_square], mean, square);
        Ok(())
    })?;
    let each = means.chunks_exact_mut(of.groups).zip(variances.chunks_exact_mut(of.groups));
    let of_image = sums.chunks_exact_mut(parts.of_image() * 2 * of.channels).zip(each);
    for (i, (sums, (means, variances))) in of_image.enumerate() {
        let (first, others) = sums.split_at_mut(2 * of.channels);
        let (mean, square) = first.split_at_mut(of.channels);
        let mut before = parts.rows(&of, i * parts.of_image()).len();
        for (j, part) in others.chunks_exact(2 * of.channels).enumerate() {
            let count = parts.rows(&of, i * parts.of_image() + j + 1).len();
            let (part_mean, part_square) = part.split_at(of.channels);
            join(mean, square, before, part_mean, part_square, count);
            before += count;
        }
        all.groups(mean, square, means, variances);
    }
    let (means, variances) = (&*means, &*variances);
    let pieces = out.chunks_mut(of.image()).enumerate().flat_map(|(image, out)| {
        let tiles = out.chunks_mut(of.tile() * of.channels).enumerate();
        tiles.map(move |(tile, out)| (image, tile * of.tile(), out))
    });
    for_each_item(k.workers, pieces, rest, size, &|(image, first, out), slot| {
        let groups = image * of.groups..(image + 1) * of.groups;
        let stats = (&means[groups.clone()], &variances[groups]);
        all.normalize(image * of.pixels + first, out, stats, slot);
        Ok(())
    })
}

/// Joins statistics of a number of other elements to those of `before` numbers.
fn join<C: Wide>(
    mean: &mut [C],
    square: &mut [C],
    before: usize,
    other_mean: &[C],
    other_square: &[C],
    count: usize,
) {
    if count == 0 {
        return;
    }
    let total = (before + count) as f64;
    let (share, cross) = (C::of(count as f64 / total), C::of(before as f64 * count as f64 / total));
    let mine = mean.iter_mut().zip(square);
    for (((mean, square), other), more) in mine.zip(other_mean).zip(other_square) {
        let off = *other - *mean;
        *mean = *mean + off * share;
        *square = *square + *more + off * off * cross;
    }
}

impl<T: Float> GroupNormInputs<'_, T> {
    /// Statistics of all channels over some pixels: means, and sums of squared differences from them. The first three of
    /// a slot's parts are used on the way.
    fn moments(
        &self,
        rows: std::ops::Range<usize>,
        [buffer, tile_mean, tile_square]: [&mut [T::Compute]; 3],
        mean: &mut [T::Compute],
        square: &mut [T::Compute],
    ) {
        mean.fill(T::Compute::ZERO);
        square.fill(T::Compute::ZERO);
        for first in rows.clone().step_by(self.of.tile()) {
            let count = self.of.tile().min(rows.end - first);
            let tile = self.x.tile(first, count, buffer);
            level().run(Moments { tile, mean: &mut *tile_mean, square: &mut *tile_square });
            join(mean, square, first - rows.start, tile_mean, tile_square, count);
        }
    }

    /// Statistics of groups from those of their channels.
    fn groups(
        &self,
        mean: &[T::Compute],
        square: &[T::Compute],
        means: &mut [T::Compute],
        variances: &mut [T::Compute],
    ) {
        let (each, pixels) = (self.of.channels / self.of.groups, self.of.pixels);
        let channels = mean.chunks_exact(each).zip(square.chunks_exact(each));
        for (((of_mean, of_square), to_mean), to_variance) in channels.zip(means).zip(variances) {
            let (mut mean, mut square) = ([of_mean[0]], [of_square[0]]);
            for (i, (m, s)) in of_mean.iter().zip(of_square).enumerate().skip(1) {
                join(&mut mean, &mut square, i * pixels, &[*m], &[*s], pixels);
            }
            *to_mean = mean[0];
            *to_variance = square[0] / T::Compute::of((each * pixels) as f64);
        }
    }

    /// One image: its statistics, and all of it normalized.
    fn image(
        &self,
        number: usize,
        out: &mut [T],
        means: &mut [T::Compute],
        variances: &mut [T::Compute],
        slot: &mut [u8],
    ) {
        let rows = number * self.of.pixels..(number + 1) * self.of.pixels;
        let mut rest = &mut *slot;
        let [buffer, tile_mean, tile_square, mean, square, _] =
            parts_of(&self.of).map(|count| cut::<T::Compute>(&mut rest, count));
        self.moments(rows.clone(), [buffer, tile_mean, tile_square], mean, square);
        self.groups(mean, square, means, variances);
        for (i, out) in out.chunks_mut(self.of.tile() * self.of.channels).enumerate() {
            self.normalize(rows.start + i * self.of.tile(), out, (means, variances), slot);
        }
    }

    /// Pixels from row `first` on, all of one image.
    fn normalize(
        &self,
        first: usize,
        out: &mut [T],
        (means, variances): (&[T::Compute], &[T::Compute]),
        mut slot: &mut [u8],
    ) {
        let [buffer, mean, by, of_scale, of_bias, _] =
            parts_of(&self.of).map(|count| cut::<T::Compute>(&mut slot, count));
        let (scale, bias) = (self.scale.row(0, of_scale), self.bias.row(0, of_bias));
        channel_numbers(&self.of, &self.how, (means, variances), scale, mean, by);
        let tile = self.x.tile(first, out.len() / self.of.channels, buffer);
        level().run(Normalize::<T> { tile, mean, by, bias, out });
    }
}

/// Statistics of the channels of a tile.
struct Moments<'a, C> {
    tile: &'a [C],
    mean: &'a mut [C],
    square: &'a mut [C],
}

impl<C: Wide> SimdKernel for Moments<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let channels = self.mean.len();
        let share = C::ONE / C::of((self.tile.len() / channels.max(1)) as f64);
        if channels < BLOCK && repeated(self.mean).is_some() {
            return self.several::<I>(share);
        }
        let each = self.mean.chunks_mut(BLOCK).zip(self.square.chunks_mut(BLOCK));
        for (block, (mean, square)) in each.enumerate() {
            let of = block * BLOCK..block * BLOCK + mean.len();
            let (mut sums, mut squares) = ([C::ZERO; BLOCK], [C::ZERO; BLOCK]);
            let (sums, squares) = (&mut sums[..mean.len()], &mut squares[..mean.len()]);
            for row in self.tile.chunks_exact(channels) {
                sums.iter_mut().zip(&row[of.clone()]).for_each(|(sum, x)| *sum = *sum + *x);
            }
            sums.iter_mut().for_each(|sum| *sum = *sum * share);
            for row in self.tile.chunks_exact(channels) {
                for ((square, x), mean) in squares.iter_mut().zip(&row[of.clone()]).zip(&*sums) {
                    let off = *x - *mean;
                    *square = off.fma::<I>(off, *square);
                }
            }
            mean.copy_from_slice(sums);
            square.copy_from_slice(squares);
        }
    }
}

impl<C: Wide> Moments<'_, C> {
    /// The same for few channels, several pixels at once.
    #[inline(always)]
    fn several<I: Isa>(self, share: C) {
        let (blocks, left) = self.tile.as_chunks::<BLOCK>();
        let left = left.chunks_exact(self.mean.len().max(1));
        let mut sums = [C::ZERO; BLOCK];
        for block in blocks {
            sums.iter_mut().zip(block).for_each(|(sum, x)| *sum = *sum + *x);
        }
        self.mean.fill(C::ZERO);
        gathered(&sums, self.mean);
        for row in left.clone() {
            self.mean.iter_mut().zip(row).for_each(|(sum, x)| *sum = *sum + *x);
        }
        self.mean.iter_mut().for_each(|sum| *sum = *sum * share);
        let Some(mean) = repeated(self.mean) else { return };
        let mut squares = [C::ZERO; BLOCK];
        for block in blocks {
            for c in 0..BLOCK {
                let off = block[c] - mean[c];
                squares[c] = off.fma::<I>(off, squares[c]);
            }
        }
        self.square.fill(C::ZERO);
        gathered(&squares, self.square);
        for row in left {
            for ((square, x), mean) in self.square.iter_mut().zip(row).zip(&*self.mean) {
                let off = *x - *mean;
                *square = off.fma::<I>(off, *square);
            }
        }
    }
}

/// A tile, normalized.
struct Normalize<'a, T: Float> {
    tile: &'a [T::Compute],
    mean: &'a [T::Compute],
    by: &'a [T::Compute],
    bias: &'a [T::Compute],
    out: &'a mut [T],
}

impl<T: Float> SimdKernel for Normalize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let channels = self.mean.len().max(1);
        let (mut tile, mut all_out) = (self.tile, self.out);
        let [mean, by, bias] = [self.mean, self.by, self.bias].map(repeated);
        if let (Some(mean), Some(by), Some(bias)) = (mean, by, bias) {
            let (blocks, left) = tile.as_chunks::<BLOCK>();
            let (out, out_left) = all_out.as_chunks_mut::<BLOCK>();
            for (x, out) in blocks.iter().zip(out) {
                let mut made = [T::Compute::ZERO; BLOCK];
                for c in 0..BLOCK {
                    made[c] = (x[c] - mean[c]).fma::<I>(by[c], bias[c]);
                }
                T::store(&made, out);
            }
            (tile, all_out) = (left, out_left);
        }
        let rows = tile.chunks_exact(channels).zip(all_out.chunks_exact_mut(channels));
        for (row, out) in rows {
            let blocks = row.chunks(BLOCK).zip(self.mean.chunks(BLOCK)).zip(self.by.chunks(BLOCK));
            let blocks = blocks.zip(self.bias.chunks(BLOCK)).zip(out.chunks_mut(BLOCK));
            for ((((x, mean), by), bias), out) in blocks {
                let mut made = [T::Compute::ZERO; BLOCK];
                let made = &mut made[..out.len()];
                for ((((made, x), mean), by), bias) in
                    made.iter_mut().zip(x).zip(mean).zip(by).zip(bias)
                {
                    *made = (*x - *mean).fma::<I>(*by, *bias);
                }
                T::store(made, out);
            }
        }
    }
}
