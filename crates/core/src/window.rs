//! Windows over images, as attributes hold them: one entry for each spatial axis of `[batch, ..., channels]`.
//!
//! Plain data: what is a sensible window depends on the op, whose type rule checks it.

use serde::Serialize;
use smallvec::SmallVec;

use crate::heap::{Heap, Seen};
use crate::shape::{Shape, Sizes};

/// Windows that slide over the spatial axes of `[batch, ..., channels]`: one entry for each of them, one to three.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Window {
    /// Elements of a window.
    pub size: Sizes,
    /// From one window to the next.
    pub stride: Sizes,
    /// How far the image is thought to go on, before and after.
    pub padding: SmallVec<[[usize; 2]; 3]>,
    /// From one element of a window to the next.
    pub dilation: Sizes,
}

/// Filters under the windows of an image.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Conv {
    /// Where a filter is laid.
    pub window: Window,
    /// Channels of the image and of the result are cut into this many groups, which are convolved separately.
    pub groups: usize,
    /// Spatial lengths of the image, where it is the result: several lengths give the same number of windows.
    /// Empty where the image is an input.
    pub image: Shape,
}

/// Means of the windows of an image.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Average {
    /// Over what.
    pub window: Window,
    /// Padding counts as zeros, so that every mean is over a whole window; otherwise it is left out.
    pub counts_padding: bool,
    /// Spatial lengths of the image, where it is the result; empty where it is an input.
    pub image: Shape,
}

/// An image of another size, its elements between those that there are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Resize {
    /// Spatial lengths of the larger or smaller image that is made.
    pub to: Shape,
    /// What lies between pixels.
    pub between: Between,
    /// Spatial lengths of the image that was resized, where that is the result; empty where it is an input.
    pub image: Shape,
}

/// What lies between the pixels of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Between {
    /// The nearest pixel.
    Nearest,
    /// Straight lines from the middle of a pixel to that of the next; beyond the outer ones, these.
    Linear,
    /// The same with the outer pixels of both images in the same place.
    LinearCorners,
}

impl Heap for Window {
    fn heap(&self, seen: &mut Seen) -> usize {
        let padding = &self.padding;
        let own = if padding.spilled() { size_of_val(&**padding) } else { 0 };
        own + self.size.heap(seen) + self.stride.heap(seen) + self.dilation.heap(seen)
    }
}
