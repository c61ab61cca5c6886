//! Images in groups of channels, and how their statistics are cut into parts: whole images where there are many, else parts
//! of each. The cut follows from the shape alone.

use std::ops::Range;

use tonnage_core::{Call, DType};
use tonnage_ops::nn::norm::{NormSpec, how};

use crate::nn::float::Wide;
use crate::parallel::{GRAIN, cut_bytes};

/// The most parts, all images together.
const PARTS: usize = 32;

/// Sizes of images.
#[derive(Debug, Clone, Copy)]
pub(super) struct Images {
    pub images: usize,
    /// Of an image.
    pub pixels: usize,
    pub channels: usize,
    pub groups: usize,
}

impl Images {
    pub fn of_sizes(sizes: &[usize], groups: usize) -> Images {
        let last = sizes.len() - 1;
        let pixels = sizes[1..last].iter().product();
        Images { images: sizes[0], pixels, channels: sizes[last], groups }
    }

    /// Of a call whose first input they are.
    pub fn of_types(op: &'static str, call: &Call) -> Option<Images> {
        let groups = how(op, call.attrs).ok()?.groups;
        let sizes = call.inputs.first()?.shape.most()?;
        (sizes.len() > 1).then(|| Images::of_sizes(&sizes, groups))
    }

    /// Elements of an image.
    pub fn image(&self) -> usize {
        self.pixels * self.channels
    }

    /// Pixels that are looked at while they are in cache.
    pub fn tile(&self) -> usize {
        (GRAIN / self.channels.max(1)).clamp(1, self.pixels.max(1))
    }
}

/// Parts of images.
#[derive(Debug, Clone, Copy)]
pub(super) enum ImageSplit {
    /// This many whole images each.
    Whole { images: usize },
    /// This many of each image.
    Parts { each: usize },
}

impl ImageSplit {
    pub fn of(of: &Images) -> ImageSplit {
        if of.images >= PARTS {
            return ImageSplit::Whole { images: of.images.div_ceil(PARTS) };
        }
        let tiles = of.pixels.div_ceil(of.tile());
        ImageSplit::Parts { each: (PARTS / of.images.max(1)).min(tiles).max(1) }
    }

    /// How many parts an image has.
    pub fn of_image(&self) -> usize {
        match self {
            ImageSplit::Whole { .. } => 1,
            ImageSplit::Parts { each } => *each,
        }
    }

    /// How many parts there are.
    pub fn count(&self, of: &Images) -> usize {
        match self {
            ImageSplit::Whole { images } => of.images.div_ceil(*images),
            ImageSplit::Parts { each } => of.images * each,
        }
    }

    /// The pixels of a part of an image, counted through all images.
    pub fn rows(&self, of: &Images, part: usize) -> Range<usize> {
        let each = self.of_image();
        let (image, part) = (part / each, part % each);
        // Between tiles, so that each is whole.
        let tiles = of.pixels.div_ceil(of.tile());
        let at = |part: usize| (tiles * part / each * of.tile()).min(of.pixels);
        image * of.pixels + at(part)..image * of.pixels + at(part + 1)
    }
}

/// Numbers that are computed at once, close at hand.
pub(super) const BLOCK: usize = 64;

/// Numbers of a few channels repeated until a block is full, so that several pixels are computed at once; nothing
/// where a block is no whole number of pixels, or not several.
#[inline(always)]
pub(super) fn repeated<C: Wide>(channels: &[C]) -> Option<[C; BLOCK]> {
    let count = channels.len();
    let several = count > 0 && count < BLOCK && BLOCK.is_multiple_of(count);
    several.then(|| std::array::from_fn(|i| channels[i % count]))
}

/// Adds what blocks of several pixels hold to their channels, pixel after pixel.
#[inline(always)]
pub(super) fn gathered<C: Wide>(block: &[C; BLOCK], channels: &mut [C]) {
    for pixel in block.chunks_exact(channels.len().max(1)) {
        channels.iter_mut().zip(pixel).for_each(|(sum, x)| *sum = *sum + *x);
    }
}

/// Bytes of a number of elements of what is computed in.
pub(super) fn bytes(computed: DType, count: usize) -> usize {
    match computed {
        DType::F64 => cut_bytes::<f64>(count),
        _ => cut_bytes::<f32>(count),
    }
}

/// For each channel of an image its group's mean, and what differences from it are multiplied by.
pub(super) fn channel_numbers<C: Wide>(
    of: &Images,
    how: &NormSpec,
    (means, variances): (&[C], &[C]),
    scale: &[C],
    mean: &mut [C],
    by: &mut [C],
) {
    let each = of.channels / of.groups;
    let to = mean.chunks_exact_mut(each).zip(by.chunks_exact_mut(each));
    let groups = to.zip(scale.chunks_exact(each)).zip(means.iter().zip(variances));
    for (((mean, by), scale), (of_group, variance)) in groups {
        let inverse = C::ONE / (*variance + C::of(how.epsilon)).root();
        mean.fill(*of_group);
        by.iter_mut().zip(scale).for_each(|(by, scale)| *by = inverse * *scale);
    }
}
