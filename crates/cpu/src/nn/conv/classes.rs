//! Pixels of an image in classes by what the windows over them are: with a stride, those of one remainder see the same
//! taps, and their windows lie side by side.

use tonnage_ops::linalg::Size;
use tonnage_ops::nn::conv::ConvSizes;
use tonnage_ops::nn::window::WindowAxis;

use super::filter::Taps;
use super::slide::Slide;
use crate::linalg::gemm::{Grid, RowLayout};

/// The pixels along one axis that have the same remainder, and the taps that they see.
#[derive(Debug, Clone, Copy)]
pub(super) struct AxisResidue {
    /// The first of these pixels.
    pub first: usize,
    /// Their taps, so that the windows go forward.
    pub taps: Taps,
    /// Their windows: of what the windows gave.
    pub slide: Slide,
}

impl AxisResidue {
    pub fn of(axis: &WindowAxis, len: usize, first: usize) -> AxisResidue {
        let WindowAxis { size, stride, padding: [before, _], dilation } = *axis;
        let from = |tap: usize| (first + before) as isize - (tap * dilation) as isize;
        let sees = |tap: &usize| from(*tap).rem_euclid(stride as isize) == 0;
        let count = (0..size).filter(sees).count();
        let last = (0..size).rev().find(sees).unwrap_or(0);
        let step = match (0..last).rev().find(sees) {
            Some(before) => last - before,
            None => 1,
        };
        let slide = Slide {
            windows: len.saturating_sub(first).div_ceil(stride),
            step: 1,
            taps: count,
            // Comes out even, or there is no tap.
            first: from(last).div_euclid(stride as isize),
            tap: (step * dilation / stride) as isize,
        };
        AxisResidue { first, taps: Taps { first: last, count, step: -(step as isize) }, slide }
    }
}

/// Pixels that see the same taps.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResidueClass {
    pub axes: [AxisResidue; 3],
    /// There are others.
    pub is_part: bool,
}

impl ResidueClass {
    pub fn all(known: &ConvSizes) -> impl Iterator<Item = ResidueClass> {
        let known = *known;
        let strides = known.window.axes.map(|axis| axis.stride);
        let [z, y, x]: [usize; 3] = std::array::from_fn(|i| strides[i].min(known.image[i]));
        (0..z * y * x).map(move |number| {
            let first = [number / x / y, number / x % y, number % x];
            let axes = std::array::from_fn(|i| {
                AxisResidue::of(&known.window.axes[i], known.image[i], first[i])
            });
            ResidueClass { axes, is_part: strides.iter().any(|stride| *stride > 1) }
        })
    }

    pub fn size(&self, known: &ConvSizes) -> Size {
        let (inputs, outputs) = known.group();
        let pixels: usize = self.axes.iter().map(|axis| axis.slide.windows).product();
        let taps: usize = self.axes.iter().map(|axis| axis.taps.count).product();
        Size { batch: known.groups, rows: known.batch * pixels, cols: inputs, k: taps * outputs }
    }

    /// Where its pixels lie in the image.
    pub fn rows(&self, known: &ConvSizes) -> RowLayout {
        if !self.is_part {
            return RowLayout::Every(known.inputs);
        }
        let [_, y, x] = known.image;
        let pixel = [y * x * known.inputs, x * known.inputs, known.inputs];
        let mut grid = Grid {
            start: 0,
            lengths: [known.batch, 1, 1, 1],
            strides: [known.image[0] * pixel[0], 0, 0, 0],
        };
        for (i, (axis, pixel)) in self.axes.iter().zip(pixel).enumerate() {
            grid.start += axis.first * pixel;
            grid.lengths[i + 1] = axis.slide.windows;
            grid.strides[i + 1] = known.window.axes[i].stride * pixel;
        }
        RowLayout::Grid(grid)
    }
}
