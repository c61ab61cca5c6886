//! Pixels of an image in classes by what the windows over them are: with a stride, those of one remainder see the same
//! taps, and their windows lie side by side.

use super::Known;
use super::filter::Taps;
use super::windows::Slide;
use crate::linalg::gemm::{Grid, Rows, Size};
use crate::nn::window::Axis;

/// The pixels along one axis that have the same remainder, and the taps that they see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remainder {
    /// The first of these pixels.
    pub first: usize,
    /// Their taps, so that the windows go forward.
    pub taps: Taps,
    /// Their windows: of what the windows gave.
    pub slide: Slide,
}

impl Remainder {
    pub fn of(axis: &Axis, len: usize, first: usize) -> Remainder {
        let Axis { size, stride, padding: [before, _], dilation } = *axis;
        let from = |tap: usize| (first + before) as isize - (tap * dilation) as isize;
        let sees = |tap: &usize| from(*tap).rem_euclid(stride as isize) == 0;
        let count = (0..size).filter(sees).count();
        let last = (0..size).rev().find(sees).unwrap_or(0);
        let step = match (0..last).rev().find(sees) {
            Some(before) => last - before,
            None => 1,
        };
        let slide = Slide {
            lines: len.saturating_sub(first).div_ceil(stride),
            step: 1,
            taps: count,
            // Comes out even, or there is no tap.
            first: from(last).div_euclid(stride as isize),
            tap: (step * dilation / stride) as isize,
        };
        Remainder { first, taps: Taps { first: last, count, step: -(step as isize) }, slide }
    }
}

/// Pixels that see the same taps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    pub axes: [Remainder; 3],
    /// There are others.
    pub is_part: bool,
}

impl Class {
    pub fn all(known: &Known) -> impl Iterator<Item = Class> {
        let known = *known;
        let strides = known.window.axes.map(|axis| axis.stride);
        let [z, y, x]: [usize; 3] = std::array::from_fn(|i| strides[i].min(known.image[i]));
        (0..z * y * x).map(move |number| {
            let first = [number / x / y, number / x % y, number % x];
            let axes = std::array::from_fn(|i| {
                Remainder::of(&known.window.axes[i], known.image[i], first[i])
            });
            Class { axes, is_part: strides.iter().any(|stride| *stride > 1) }
        })
    }

    pub fn size(&self, known: &Known) -> Size {
        let (inputs, outputs) = known.group();
        let pixels: usize = self.axes.iter().map(|axis| axis.slide.lines).product();
        let taps: usize = self.axes.iter().map(|axis| axis.taps.count).product();
        Size {
            batch: known.groups,
            rows: known.batch * pixels,
            cols: inputs,
            depth: taps * outputs,
        }
    }

    /// Where its pixels lie in the image.
    pub fn rows(&self, known: &Known) -> Rows {
        if !self.is_part {
            return Rows::Every(known.inputs);
        }
        let [_, y, x] = known.image;
        let pixel = [y * x * known.inputs, x * known.inputs, known.inputs];
        let mut grid = Grid {
            start: 0,
            lengths: [known.batch, 1, 1, 1],
            strides: [known.image[0] * pixel[0], 0, 0, 0],
        };
        for i in 0..3 {
            grid.start += self.axes[i].first * pixel[i];
            grid.lengths[i + 1] = self.axes[i].slide.lines;
            grid.strides[i + 1] = known.window.axes[i].stride * pixel[i];
        }
        Rows::Grid(grid)
    }
}
