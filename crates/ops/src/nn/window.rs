//! Windows over `[batch, height, width, channels]`: where each lies, and how its elements are numbered.
//!
//! Element `i` of a window of width `w` is row `i / w`, column `i % w`, padding included: an index is
//! small, whatever the image's size, and means the same for every window.

use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::row::{AxisMap, AxisOf};
use tonnage_core::{Attrs, DType, Dim, Shape, TensorType};

use crate::infer::{along, bad_attrs};

/// A window's size, stride and padding, height before width.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub size: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [[usize; 2]; 2],
}

impl Window {
    /// From the attributes, checked.
    pub fn of(op: &'static str, attrs: &Attrs) -> Result<Window> {
        let Attrs::Window { size, stride, padding } = *attrs else {
            return Err(bad_attrs(op, attrs, "a window"));
        };
        if size.contains(&0) || stride.contains(&0) {
            let what = format!("a window of {size:?} by steps of {stride:?} goes nowhere");
            return Err(bad_argument(op, what, "use sizes and strides of at least 1"));
        }
        // So that every window has at least one element of the image in it.
        if padding.iter().zip(size).any(|(p, size)| p.iter().any(|p| *p >= size)) {
            let what = format!("padding {padding:?} is not smaller than the window {size:?}");
            return Err(bad_argument(op, what, "pad by less than the window's size"));
        }
        let window = Window { size, stride, padding };
        if window.area() > 1 << 16 {
            let what = format!("a window of {size:?} has {} elements", window.area());
            return Err(bad_argument(op, what, "use windows of at most 65536 elements"));
        }
        Ok(window)
    }

    /// How many elements, padding included.
    pub fn area(&self) -> usize {
        self.size[0].saturating_mul(self.size[1])
    }

    /// The smallest dtype that holds the index of an element.
    pub fn index_dtype(&self) -> DType {
        if self.area() <= 1 << 8 { DType::U8 } else { DType::U16 }
    }

    /// The shape of what the windows of an image give.
    pub fn slide(&self, op: &'static str, image: &TensorType) -> Result<Shape> {
        let [batch, height, width, channels] = &image.shape[..] else {
            let expected = "4 ([batch, height, width, channels])".into();
            return Err(ErrorKind::RankMismatch { op, shape: image.shape.clone(), expected }.into());
        };
        let mut made = [batch.clone(), height.clone(), width.clone(), channels.clone()];
        for axis in 0..2 {
            let padded = made[axis + 1].plus(&Dim::Known(self.padding[axis].iter().sum()));
            if padded.known().is_some_and(|n| n < self.size[axis]) {
                let what = format!("no window of {:?} fits into {image}", self.size);
                return Err(bad_argument(op, what, "use a smaller window or more padding"));
            }
            let steps = padded.minus(&Dim::Known(self.size[axis]));
            let steps = steps.divided_by(&Dim::Known(self.stride[axis]));
            made[axis + 1] = steps.plus(&Dim::Known(1));
        }
        Ok(made.into_iter().collect())
    }

    /// The elements of window `number` along an axis of length `len` that are no padding: the first
    /// and one past the last, counted within the window.
    pub fn inside(&self, axis: usize, number: usize, len: usize) -> std::ops::Range<usize> {
        let (start, pad) = (number * self.stride[axis], self.padding[axis][0]);
        pad.saturating_sub(start)..self.size[axis].min((len + pad).saturating_sub(start))
    }

    /// Where element `i` of window `number` lies along an axis; only for elements that are inside.
    pub fn place(&self, axis: usize, number: usize, i: usize) -> usize {
        number * self.stride[axis] + i - self.padding[axis][0]
    }

    /// The windows, among `count`, that have place `at` along an axis in them.
    pub fn covering(&self, axis: usize, at: usize, count: usize) -> std::ops::Range<usize> {
        let padded = at + self.padding[axis][0];
        let first = (padded + 1).saturating_sub(self.size[axis]).div_ceil(self.stride[axis]);
        first..count.min(padded / self.stride[axis] + 1)
    }
}

/// Batch and channels run along those of all `inputs` inputs; windows overlap along the other two.
pub fn window_axes(inputs: usize) -> AxisMap {
    let of = |axis| {
        let inputs: Vec<(usize, usize)> = (0..inputs).map(|input| (input, axis)).collect();
        along(&inputs)
    };
    let axes = vec![of(0), AxisOf::Mixed, AxisOf::Mixed, of(3)];
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}
