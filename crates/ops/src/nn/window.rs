//! Windows over images: three spatial axes, of which an image with fewer lacks the first.
//!
//! Element `i` of a window is its taps counted row by row, padding included: an index is small, whatever the
//! image's size, and means the same for every window.

use std::ops::Range;

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::{Dim, Shape, TensorType, window};

/// Lengths from here on are refused, so that no sum of them overflows.
const FAR: usize = 1 << 31;

/// Windows along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAxis {
    /// Taps of a window.
    pub size: usize,
    /// From one window to the next.
    pub stride: usize,
    /// Padding before and after the axis.
    pub padding: [usize; 2],
    /// From one tap to the next.
    pub dilation: usize,
}

impl WindowAxis {
    /// What an image without this axis has.
    const NONE: WindowAxis = WindowAxis { size: 1, stride: 1, padding: [0, 0], dilation: 1 };

    /// From the first tap to one past the last.
    pub fn reach(&self) -> usize {
        (self.size - 1) * self.dilation + 1
    }

    /// The taps of window `number` that lie on an axis of length `len` and not in padding.
    pub fn inside(&self, number: usize, len: usize) -> Range<usize> {
        let (start, pad) = (number * self.stride, self.padding[0]);
        let first = pad.saturating_sub(start).div_ceil(self.dilation);
        let end = (len + pad).saturating_sub(start).div_ceil(self.dilation);
        first..end.min(self.size)
    }

    /// Where a tap of window `number` lies; only for taps that are inside.
    pub fn place(&self, number: usize, tap: usize) -> usize {
        number * self.stride + tap * self.dilation - self.padding[0]
    }

    /// The window, among `count`, whose tap of that number lies at `at`.
    pub fn window_at(&self, at: usize, tap: usize, count: usize) -> Option<usize> {
        let start = (at + self.padding[0]).checked_sub(tap * self.dilation)?;
        (start.is_multiple_of(self.stride) && start / self.stride < count)
            .then_some(start / self.stride)
    }

    /// True where window `i` is element `i`.
    pub fn is_trivial(&self) -> bool {
        *self == WindowAxis { dilation: self.dilation, ..WindowAxis::NONE }
    }
}

/// Windows over an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowGeometry {
    /// Along depth, height and width.
    pub axes: [WindowAxis; 3],
    /// How many of these axes the image has: the last ones.
    pub spatial: usize,
}

impl WindowGeometry {
    /// From attributes, checked.
    pub fn of(op: &'static str, from: &window::Window) -> Result<WindowGeometry> {
        let window::Window { size, stride, padding, dilation } = from;
        let spatial = size.len();
        let named = [stride.len(), padding.len(), dilation.len()];
        if !(1..=3).contains(&spatial) || named.iter().any(|n| *n != spatial) {
            let what = format!(
                "a window of {size:?} by {stride:?} with padding {padding:?} and dilation {dilation:?}"
            );
            return Err(bad_argument(op, what, "give each for one to three spatial axes"));
        }
        if size.iter().chain(stride).chain(dilation).any(|n| *n == 0) {
            let what = format!(
                "a window of {size:?} by {stride:?} with dilation {dilation:?} goes nowhere"
            );
            return Err(bad_argument(op, what, "use sizes, strides and dilations of at least 1"));
        }
        let pads = padding.iter().flatten();
        if size.iter().chain(stride).chain(dilation).chain(pads).any(|n| *n >= FAR)
            || size.iter().zip(dilation).any(|(n, d)| n * d >= FAR)
        {
            let what = format!(
                "a window of {size:?} by {stride:?} with padding {padding:?} and dilation {dilation:?}"
            );
            return Err(bad_argument(op, what, "stay below 2^31"));
        }
        let mut axes = [WindowAxis::NONE; 3];
        for (i, axis) in axes[3 - spatial..].iter_mut().enumerate() {
            *axis = WindowAxis {
                size: size[i],
                stride: stride[i],
                padding: padding[i],
                dilation: dilation[i],
            };
        }
        Ok(WindowGeometry { axes, spatial })
    }

    /// How many taps, padding included.
    pub fn area(&self) -> usize {
        self.axes.iter().map(|axis| axis.size).fold(1, usize::saturating_mul)
    }

    /// The taps of each axis.
    pub fn sizes(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.size)
    }

    /// True where every window is one pixel, and every pixel has one.
    pub fn is_trivial(&self) -> bool {
        self.axes.iter().all(WindowAxis::is_trivial)
    }

    /// The spatial lengths of an image; refuses one that has another number of axes.
    pub fn lengths<'a>(&self, op: &'static str, image: &'a TensorType) -> Result<&'a [Dim]> {
        let rank = image.shape.rank();
        if rank == self.spatial + 2 {
            return Ok(&image.shape[1..rank - 1]);
        }
        let named = ["width", "height, width", "depth, height, width"][self.spatial - 1];
        let expected = format!("{} ([batch, {named}, channels])", self.spatial + 2);
        Err(ErrorKind::RankMismatch { op, shape: image.shape.clone(), expected }.into())
    }

    /// How many windows there are along axes of these lengths.
    pub fn slide(&self, op: &'static str, lengths: &[Dim]) -> Result<SmallVec<[Dim; 3]>> {
        let own = &self.axes[3 - self.spatial..];
        let mut made = SmallVec::new();
        for (axis, len) in own.iter().zip(lengths) {
            let padded = len.plus(&Dim::Known(axis.padding.iter().sum()));
            if padded.known().is_some_and(|n| n < axis.reach()) {
                let of: Shape = lengths.iter().cloned().collect();
                let what = format!(
                    "a window that reaches over {:?} does not fit into {of} with padding {:?}",
                    own.iter().map(WindowAxis::reach).collect::<SmallVec<[usize; 3]>>(),
                    own.iter().map(|axis| axis.padding).collect::<SmallVec<[[usize; 2]; 3]>>(),
                );
                return Err(bad_argument(op, what, "use a smaller window or more padding"));
            }
            let steps = padded.minus(&Dim::Known(axis.reach()));
            made.push(steps.divided_by(&Dim::Known(axis.stride)).plus(&Dim::Known(1)));
        }
        Ok(made)
    }
}
