//! The kernel of `group_norm_grad`: two sums for each channel of each image, then one pass over the image. Gradients of
//! scale and bias are sums over images too, in parts as those of the statistics.

use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::{Bytes, Call, Element};
use tonnage_ops::nn::norm::group_grad::NAME;
use tonnage_ops::nn::norm::{NormSpec, computed, how};
use tonnage_simd::{Isa, SimdKernel, level};

use super::images::{BLOCK, ImageSplit, Images, bytes, gathered, repeated};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::StridedRows;
use crate::parallel::{cut, for_each_item};

/// The kernel of [`GROUP_NORM_GRAD`](tonnage_ops::nn::norm::group_grad::GROUP_NORM_GRAD).
pub static GROUP_NORM_GRAD: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Elements of a thread's scratch: two tiles, and seven numbers for each channel.
fn parts_of(of: &Images) -> [usize; 9] {
    let (tile, channels) = (of.tile() * of.channels, of.channels);
    let mut parts = [channels; 9];
    parts[..2].fill(tile);
    parts
}

/// The same without the last two, which hold an image's own sums.
fn used_of(of: &Images) -> [usize; 7] {
    let all = parts_of(of);
    std::array::from_fn(|i| all[i])
}

/// Two sums for each channel of each part.
fn sums_of(of: &Images) -> usize {
    2 * of.channels * ImageSplit::of(of).count(of).max(1)
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(of) = Images::of_types(NAME, call) else { return Bytes::ZERO };
    let computed = computed(call.inputs[0].dtype);
    let slot: usize = parts_of(&of).iter().map(|count| bytes(computed, *count)).sum();
    Bytes::of(slot.saturating_mul(threads).saturating_add(bytes(computed, sums_of(&of))))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

/// What all parts read.
struct GroupNormGradInputs<'a, T> {
    of: Images,
    how: NormSpec,
    x: StridedRows<'a, T>,
    g: StridedRows<'a, T>,
    scale: StridedRows<'a, T>,
    means: &'a In<'a>,
    variances: &'a In<'a>,
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let how = how(NAME, k.attrs)?;
    let of = Images::of_sizes(&k.inputs[0].layout.sizes, how.groups);
    let [x, scale, g] = [0, 1, 4].map(|i| StridedRows::<T>::of(&k.inputs[i]));
    let (means, variances) = (&k.inputs[2], &k.inputs[3]);
    let all = GroupNormGradInputs { of, how, x, g, scale, means, variances };
    let [dx, dscale, dbias] = &mut k.outputs[..] else { return Ok(()) };
    let (dx, dscale, dbias) = (dx.slice::<T>(), dscale.slice::<T>(), dbias.slice::<T>());
    if dx.is_empty() {
        dscale.fill(T::zeroed());
        dbias.fill(T::zeroed());
        return Ok(());
    }
    let size: usize = parts_of(&of).iter().map(|n| bytes(<T::Compute as Element>::DTYPE, *n)).sum();
    let parts = ImageSplit::of(&of);
    let mut rest = &mut *k.scratch;
    let sums = cut::<T::Compute>(&mut rest, sums_of(&of));
    let row = 2 * of.channels;
    if let ImageSplit::Whole { images } = parts {
        let items = dx.chunks_mut(images * of.image()).zip(sums.chunks_mut(row)).enumerate();
        for_each_item(k.workers, items, rest, size, &|(part, (dx, sums)), slot| {
            sums.fill(T::Compute::ZERO);
            for (i, dx) in dx.chunks_exact_mut(of.image()).enumerate() {
                all.image(part * images + i, dx, sums, slot);
            }
            Ok(())
        })?;
    } else {
        let items = sums.chunks_mut(row).enumerate();
        for_each_item(k.workers, items, rest, size, &|(part, sums), slot| {
            let image = part / parts.of_image();
            all.sums(image, parts.rows(&of, part), sums, slot);
            Ok(())
        })?;
        // The sums of an image stand where those of its first part were.
        for sums in sums.chunks_exact_mut(parts.of_image() * row) {
            let (first, others) = sums.split_at_mut(row);
            add_up(first, others);
            others.fill(T::Compute::ZERO);
        }
        let of_images = &*sums;
        let pieces = dx.chunks_mut(of.image()).enumerate().flat_map(|(image, dx)| {
            let tiles = dx.chunks_mut(of.tile() * of.channels).enumerate();
            tiles.map(move |(tile, dx)| (image, tile * of.tile(), dx))
        });
        for_each_item(k.workers, pieces, rest, size, &|(image, first, dx), slot| {
            let sums = &of_images[image * parts.of_image() * row..][..row];
            all.image_grad(image, first, sums, dx, slot);
            Ok(())
        })?;
    }
    let (first, others) = sums.split_at_mut(row);
    add_up(first, others);
    T::store(&first[..of.channels], dscale);
    T::store(&first[of.channels..], dbias);
    Ok(())
}

/// Adds rows to the first, in order.
fn add_up<C: Wide>(first: &mut [C], others: &[C]) {
    for row in others.chunks_exact(first.len().max(1)) {
        first.iter_mut().zip(row).for_each(|(a, b)| *a = *a + *b);
    }
}

/// A number of one group of one image.
fn at<C: Element>(numbers: &In, image: usize, group: usize) -> C {
    numbers.slice::<C>()[numbers.layout.position(&[image, group])]
}

impl<T: Float> GroupNormGradInputs<'_, T> {
    /// For each channel of an image its group's mean, and what differences from it are multiplied by.
    fn numbers(&self, image: usize, mean: &mut [T::Compute], by: &mut [T::Compute]) {
        let each = self.of.channels / self.of.groups;
        let groups = mean.chunks_exact_mut(each).zip(by.chunks_exact_mut(each));
        for (group, (mean, by)) in groups.enumerate() {
            mean.fill(at(self.means, image, group));
            let variance: T::Compute = at(self.variances, image, group);
            let variance = variance + T::Compute::of(self.how.epsilon);
            by.fill(T::Compute::ONE / variance.root());
        }
    }

    /// Sums of some pixels of one image: of `g` times normalized and of `g`.
    fn sums(
        &self,
        image: usize,
        rows: std::ops::Range<usize>,
        sums: &mut [T::Compute],
        mut slot: &mut [u8],
    ) {
        let [x_tile, g_tile, mean, by, ..] =
            used_of(&self.of).map(|count| cut::<T::Compute>(&mut slot, count));
        self.numbers(image, mean, by);
        sums.fill(T::Compute::ZERO);
        let (products, plain) = sums.split_at_mut(self.of.channels);
        for first in rows.clone().step_by(self.of.tile()) {
            let count = self.of.tile().min(rows.end - first);
            let (x, g) = (self.x.tile(first, count, x_tile), self.g.tile(first, count, g_tile));
            level().run(TileSums { x, g, mean, products, plain });
        }
        products.iter_mut().zip(by).for_each(|(sum, by)| *sum = *sum * *by);
    }

    /// Pixels from `first` on of one image, whose sums are known.
    fn image_grad(
        &self,
        image: usize,
        first: usize,
        sums: &[T::Compute],
        dx: &mut [T],
        mut slot: &mut [u8],
    ) {
        let [x_tile, g_tile, mean, by, of_scale, for_mean, for_deviation] =
            used_of(&self.of).map(|count| cut::<T::Compute>(&mut slot, count));
        self.numbers(image, mean, by);
        let scale = self.scale.row(0, of_scale);
        let each = self.of.channels / self.of.groups;
        let share = T::Compute::ONE / T::Compute::of((each * self.of.pixels) as f64);
        let (products, plain) = sums.split_at(self.of.channels);
        let to = for_mean.chunks_exact_mut(each).zip(for_deviation.chunks_exact_mut(each));
        for (group, (for_mean, for_deviation)) in to.enumerate() {
            let of = group * each..(group + 1) * each;
            let total = |sums: &[T::Compute]| {
                let terms = sums[of.clone()].iter().zip(&scale[of.clone()]);
                terms.fold(T::Compute::ZERO, |sum, (x, scale)| sum + *x * *scale) * share
            };
            for_mean.fill(total(plain));
            for_deviation.fill(total(products));
        }
        let row = image * self.of.pixels + first;
        let count = dx.len() / self.of.channels;
        let (x, g) = (self.x.tile(row, count, x_tile), self.g.tile(row, count, g_tile));
        level().run(GroupNormGradTile::<T> { x, g, mean, by, scale, for_mean, for_deviation, dx });
    }

    /// One image: its sums, which are added to `sums`, and its gradient.
    fn image(&self, number: usize, dx: &mut [T], sums: &mut [T::Compute], slot: &mut [u8]) {
        let rows = number * self.of.pixels..(number + 1) * self.of.pixels;
        let mut rest = &mut *slot;
        let parts = parts_of(&self.of);
        // The last two parts of the slot, which nothing else uses.
        let before: usize =
            parts[..7].iter().map(|n| bytes(<T::Compute as Element>::DTYPE, *n)).sum();
        let (used, mut own) = std::mem::take(&mut rest).split_at_mut(before);
        let mine = cut::<T::Compute>(&mut own, 2 * self.of.channels);
        self.sums(number, rows, mine, used);
        for (i, dx) in dx.chunks_mut(self.of.tile() * self.of.channels).enumerate() {
            self.image_grad(number, i * self.of.tile(), mine, dx, used);
        }
        add_up(sums, mine);
    }
}

/// Sums over a tile: of `g (x - mean)`, and of `g`.
struct TileSums<'a, C> {
    x: &'a [C],
    g: &'a [C],
    mean: &'a [C],
    products: &'a mut [C],
    plain: &'a mut [C],
}

impl<C: Wide> SimdKernel for TileSums<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let channels = self.mean.len().max(1);
        let (mut all_x, mut all_g) = (self.x, self.g);
        if let Some(mean) = repeated(self.mean) {
            let (mut first, mut second) = ([C::ZERO; BLOCK], [C::ZERO; BLOCK]);
            let ((x, x_left), (g, g_left)) =
                (all_x.as_chunks::<BLOCK>(), all_g.as_chunks::<BLOCK>());
            for (x, g) in x.iter().zip(g) {
                for c in 0..BLOCK {
                    first[c] = (x[c] - mean[c]).fma::<I>(g[c], first[c]);
                    second[c] = second[c] + g[c];
                }
            }
            gathered(&first, self.products);
            gathered(&second, self.plain);
            (all_x, all_g) = (x_left, g_left);
        }
        let sums = self.products.chunks_mut(BLOCK).zip(self.plain.chunks_mut(BLOCK));
        for (block, ((products, plain), mean)) in sums.zip(self.mean.chunks(BLOCK)).enumerate() {
            let of = block * BLOCK..block * BLOCK + mean.len();
            let (mut first, mut second) = ([C::ZERO; BLOCK], [C::ZERO; BLOCK]);
            let (first, second) = (&mut first[..mean.len()], &mut second[..mean.len()]);
            for (x, g) in all_x.chunks_exact(channels).zip(all_g.chunks_exact(channels)) {
                let sums = first.iter_mut().zip(&mut *second).zip(mean);
                for (((first, second), mean), (x, g)) in
                    sums.zip(x[of.clone()].iter().zip(&g[of.clone()]))
                {
                    *first = (*x - *mean).fma::<I>(*g, *first);
                    *second = *second + *g;
                }
            }
            products.iter_mut().zip(first).for_each(|(sum, x)| *sum = *sum + *x);
            plain.iter_mut().zip(second).for_each(|(sum, x)| *sum = *sum + *x);
        }
    }
}

/// The gradient of a tile.
struct GroupNormGradTile<'a, T: Float> {
    x: &'a [T::Compute],
    g: &'a [T::Compute],
    mean: &'a [T::Compute],
    by: &'a [T::Compute],
    scale: &'a [T::Compute],
    for_mean: &'a [T::Compute],
    for_deviation: &'a [T::Compute],
    dx: &'a mut [T],
}

impl<T: Float> SimdKernel for GroupNormGradTile<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let channels = self.mean.len().max(1);
        let (mut all_x, mut all_g, mut all_dx) = (self.x, self.g, self.dx);
        let [mean, by, scale, for_mean, for_deviation] =
            [self.mean, self.by, self.scale, self.for_mean, self.for_deviation].map(repeated);
        if let (Some(mean), Some(by), Some(scale), Some(for_mean), Some(for_deviation)) =
            (mean, by, scale, for_mean, for_deviation)
        {
            let ((x, x_left), (g, g_left)) =
                (all_x.as_chunks::<BLOCK>(), all_g.as_chunks::<BLOCK>());
            let (dx, dx_left) = all_dx.as_chunks_mut::<BLOCK>();
            for ((x, g), dx) in x.iter().zip(g).zip(dx) {
                let mut made = [T::Compute::ZERO; BLOCK];
                for c in 0..BLOCK {
                    let normal = (x[c] - mean[c]) * by[c];
                    let along = normal.fma::<I>(for_deviation[c], for_mean[c]);
                    made[c] = (g[c] * scale[c] - along) * by[c];
                }
                T::store(&made, dx);
            }
            (all_x, all_g, all_dx) = (x_left, g_left, dx_left);
        }
        let rows = all_x.chunks_exact(channels).zip(all_g.chunks_exact(channels));
        for ((x, g), dx) in rows.zip(all_dx.chunks_exact_mut(channels)) {
            for first in (0..channels).step_by(BLOCK) {
                let of = first..channels.min(first + BLOCK);
                let (x, g, mean) = (&x[of.clone()], &g[of.clone()], &self.mean[of.clone()]);
                let (by, scale) = (&self.by[of.clone()], &self.scale[of.clone()]);
                let for_mean = &self.for_mean[of.clone()];
                let for_deviation = &self.for_deviation[of.clone()];
                let mut made = [T::Compute::ZERO; BLOCK];
                let made = &mut made[..of.len()];
                for c in 0..made.len() {
                    let normal = (x[c] - mean[c]) * by[c];
                    let along = normal.fma::<I>(for_deviation[c], for_mean[c]);
                    made[c] = (g[c] * scale[c] - along) * by[c];
                }
                T::store(made, &mut dx[of]);
            }
        }
    }
}
