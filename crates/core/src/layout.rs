//! Where the elements of a tensor lie in its buffer: an offset and a stride an axis.
//!
//! Views (transposes, slices, broadcasts) are new layouts over the same bytes. Everything here
//! counts elements, not bytes, and is concrete: symbols are gone before a layout exists.

use std::ops::Range;

use smallvec::SmallVec;

use crate::heap::{Heap, Seen};
use crate::shape::Sizes;
use crate::walk::StridedAxes;

/// Steps from one element to the next, one an axis; may be 0 (broadcast) or negative (reversed).
pub type Strides = SmallVec<[isize; 4]>;

/// One axis of a slice: the first element, how many, and the step between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Slice {
    /// Position of the first element.
    pub start: usize,
    /// How many elements.
    pub len: usize,
    /// From one to the next; negative walks backwards; not 0.
    pub step: isize,
}

/// Sizes, strides and the position of the first element.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Length of each axis.
    pub sizes: Sizes,
    /// Step of each axis.
    pub strides: Strides,
    /// Where the element of index 0, 0, ... lies.
    pub offset: usize,
}

impl Clone for Layout {
    // Every small eager op comes by here: copying slices is quicker than collecting elements.
    #[inline]
    fn clone(&self) -> Layout {
        Layout {
            sizes: Sizes::from_slice(&self.sizes),
            strides: Strides::from_slice(&self.strides),
            offset: self.offset,
        }
    }
}

impl Layout {
    /// Elements close together, last axis fastest.
    pub fn contiguous(sizes: impl Into<Sizes>) -> Layout {
        let sizes = sizes.into();
        let strides = contiguous_strides(&sizes);
        Layout { sizes, strides, offset: 0 }
    }

    /// Elements in order, with room between rows of the last axis: from one to the next are that many elements.
    pub fn rows_apart(sizes: impl Into<Sizes>, step: usize) -> Layout {
        let mut layout = Layout::contiguous(sizes);
        let mut stride = step as isize;
        for axis in (0..layout.sizes.len().saturating_sub(1)).rev() {
            layout.strides[axis] = stride;
            stride *= layout.sizes[axis] as isize;
        }
        layout
    }

    /// From a row of the last axis to the next, in elements, where all lie in order but for room between rows.
    #[inline]
    pub fn row_step(&self) -> Option<usize> {
        let axis = self.sizes.len().checked_sub(2)?;
        let step = usize::try_from(self.strides[axis]).ok()?;
        let is_apart = step > self.sizes[axis + 1]
            && !self.is_contiguous()
            && self.strides == Layout::rows_apart(self.sizes.clone(), step).strides;
        is_apart.then_some(step)
    }

    /// How many elements.
    #[inline]
    pub fn count(&self) -> usize {
        self.sizes.iter().product()
    }

    /// True where the elements lie close together in order, from the offset on.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        StridedAxes::from(self).is_contiguous()
    }

    /// The axes in another order; `order[i]` is the old axis that becomes axis `i`.
    #[must_use]
    pub fn transpose(&self, order: &[usize]) -> Layout {
        Layout {
            sizes: order.iter().map(|a| self.sizes[*a]).collect(),
            strides: order.iter().map(|a| self.strides[*a]).collect(),
            offset: self.offset,
        }
    }

    /// A part of every axis.
    #[must_use]
    pub fn slice(&self, slices: &[Slice]) -> Layout {
        let mut offset = self.offset as isize;
        let mut strides = Strides::new();
        let mut sizes = Sizes::new();
        for (s, stride) in slices.iter().zip(&self.strides) {
            if s.len > 0 {
                offset += s.start as isize * stride;
            }
            sizes.push(s.len);
            strides.push(stride * s.step);
        }
        Layout { sizes, strides, offset: offset as usize }
    }

    /// Broadcast to `sizes`: new axes in front and lengths of 1 get a stride of 0. `None` where the
    /// lengths do not fit.
    pub fn broadcast_to(&self, sizes: &[usize]) -> Option<Layout> {
        let new = sizes.len().checked_sub(self.sizes.len())?;
        let mut strides = Strides::from_elem(0, new);
        for (i, to) in sizes[new..].iter().enumerate() {
            match self.sizes[i] {
                from if from == *to => strides.push(self.strides[i]),
                1 => strides.push(0),
                _ => return None,
            }
        }
        Some(Layout { sizes: sizes.into(), strides, offset: self.offset })
    }

    /// The same elements in the same order under another shape, where that needs no copy.
    pub fn reshape(&self, sizes: &[usize]) -> Option<Layout> {
        if self.count() != sizes.iter().product::<usize>() {
            return None;
        }
        if self.count() == 0 {
            return Some(Layout { offset: self.offset, ..Layout::contiguous(sizes) });
        }
        // Old axes, without those of length 1, joined where one runs on into the next.
        let mut runs: SmallVec<[(usize, isize); 4]> = SmallVec::new();
        for (size, stride) in self.sizes.iter().zip(&self.strides).filter(|(s, _)| **s != 1) {
            match runs.last_mut() {
                Some((n, s)) if *s == stride * *size as isize => {
                    *n *= size;
                    *s = *stride;
                }
                _ => runs.push((*size, *stride)),
            }
        }
        // New axes, from the last: each must divide what is left of the current run.
        let mut strides = Strides::from_elem(0, sizes.len());
        let mut left = runs.pop().unwrap_or((1, 1));
        for (i, size) in sizes.iter().enumerate().rev() {
            if *size == 1 {
                continue;
            }
            if left.0 == 1 {
                left = runs.pop()?;
            }
            if !left.0.is_multiple_of(*size) {
                return None;
            }
            strides[i] = left.1;
            left = (left.0 / size, left.1 * *size as isize);
        }
        Some(Layout { sizes: sizes.into(), strides, offset: self.offset })
    }

    /// Where the element at `index` lies.
    pub fn position(&self, index: &[usize]) -> usize {
        let step: isize = index.iter().zip(&self.strides).map(|(i, s)| *i as isize * s).sum();
        (self.offset as isize + step) as usize
    }

    /// Where the element of that number in logical order lies.
    ///
    /// ```
    /// # use tonnage_core::layout::Layout;
    /// let transposed = Layout::contiguous(&[2, 3][..]).transpose(&[1, 0]);
    /// assert_eq!((0..6).map(|i| transposed.nth(i)).collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    /// ```
    pub fn nth(&self, number: usize) -> usize {
        let (mut rest, mut place) = (number, self.offset as isize);
        for (size, stride) in self.sizes.iter().zip(&self.strides).rev() {
            place += (rest % size) as isize * stride;
            rest /= size;
        }
        place as usize
    }

    /// Positions from the first element to behind the last one, in the order of memory.
    ///
    /// ```
    /// # use tonnage_core::layout::Layout;
    /// let (sizes, strides) = ([2, 3].into_iter().collect(), [-10, 1].into_iter().collect());
    /// let rows = Layout { sizes, strides, offset: 15 };
    /// assert_eq!(rows.window(), 5..18);
    /// assert_eq!(Layout::contiguous(&[0, 3][..]).window(), 0..0);
    /// ```
    pub fn window(&self) -> Range<usize> {
        if self.sizes.contains(&0) {
            return 0..0;
        }
        let below = self.sizes.iter().zip(&self.strides).filter(|(_, stride)| **stride < 0);
        let far: usize = below.map(|(size, stride)| (size - 1) * stride.unsigned_abs()).sum();
        self.offset - far..self.end()
    }

    /// The position behind the last element in the order of memory: [`Layout::window`] ends there.
    pub fn end(&self) -> usize {
        if self.sizes.contains(&0) {
            return 0;
        }
        let above = self.sizes.iter().zip(&self.strides).filter(|(_, stride)| **stride > 0);
        self.offset + 1 + above.map(|(size, stride)| (size - 1) * *stride as usize).sum::<usize>()
    }

    /// Calls `visit` with the position of every element, in logical order.
    pub fn for_each(&self, visit: impl FnMut(usize)) {
        StridedAxes::from(self).positions().for_each(visit);
    }
}

/// The strides of elements that lie close together.
pub fn contiguous_strides(sizes: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(0, sizes.len());
    let mut step = 1isize;
    for (stride, size) in strides.iter_mut().zip(sizes).rev() {
        *stride = step;
        // Sizes whose product overflows are refused before a layout is made; an empty tensor may
        // still have such sizes beside its 0.
        step = step.wrapping_mul(*size as isize);
    }
    strides
}

impl Heap for Layout {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.sizes.heap(seen) + self.strides.heap(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(layout: &Layout) -> Vec<usize> {
        let mut all = Vec::new();
        layout.for_each(|p| all.push(p));
        all
    }

    fn sizes(s: &[usize]) -> Sizes {
        s.into()
    }

    #[test]
    fn views_walk_the_bytes_that_they_should() {
        let base = Layout::contiguous(sizes(&[2, 3]));
        assert_eq!(positions(&base), [0, 1, 2, 3, 4, 5]);
        assert_eq!(positions(&base.transpose(&[1, 0])), [0, 3, 1, 4, 2, 5]);
        let reversed = base
            .slice(&[Slice { start: 1, len: 2, step: -1 }, Slice { start: 0, len: 2, step: 2 }]);
        assert_eq!(positions(&reversed), [3, 5, 0, 2]);
        let wide = Layout::contiguous(sizes(&[1, 3])).broadcast_to(&[2, 2, 3]).unwrap();
        assert_eq!(positions(&wide), [0, 1, 2].repeat(4));
        assert_eq!(positions(&Layout::contiguous(sizes(&[]))), [0]);
        assert_eq!(positions(&Layout::contiguous(sizes(&[0, 2]))), []);
    }

    #[test]
    fn rows_apart_are_told_from_others() {
        let apart = Layout::rows_apart(sizes(&[2, 3, 5]), 8);
        assert_eq!(positions(&apart)[3..7], [3, 4, 8, 9]);
        assert_eq!((apart.strides.as_slice(), apart.end()), (&[24, 8, 1][..], 45));
        assert_eq!(apart.row_step(), Some(8));
        let close = Layout::contiguous(sizes(&[2, 3, 5]));
        assert_eq!(Layout::rows_apart(sizes(&[2, 3, 5]), 5), close);
        assert_eq!((close.row_step(), close.transpose(&[0, 2, 1]).row_step()), (None, None));
        // Parts and broadcasts are no such rows, nor is one row.
        let part = apart.slice(&[0, 1, 2].map(|i| Slice { start: 0, len: [2, 2, 5][i], step: 1 }));
        assert_eq!(part.row_step(), None);
        assert_eq!(close.slice(&[Slice { start: 0, len: 1, step: 1 }; 3]).row_step(), None);
        assert_eq!(Layout::contiguous(sizes(&[9])).row_step(), None);
    }

    #[test]
    fn reshape_is_a_view_exactly_where_the_order_allows() {
        let base = Layout::contiguous(sizes(&[4, 6]));
        assert_eq!(base.reshape(&[2, 2, 3, 2]).unwrap(), Layout::contiguous(sizes(&[2, 2, 3, 2])));
        let t = base.transpose(&[1, 0]);
        assert_eq!(t.reshape(&[24]), None);
        let split = t.reshape(&[3, 2, 1, 4]).unwrap();
        assert_eq!(positions(&split), positions(&t));
        let part =
            base.slice(&[Slice { start: 0, len: 4, step: 1 }, Slice { start: 1, len: 2, step: 1 }]);
        assert_eq!(part.reshape(&[8]), None);
        assert_eq!(positions(&part.reshape(&[2, 2, 2]).unwrap()), positions(&part));
        assert_eq!(base.reshape(&[5]), None);
        assert_eq!(
            Layout::contiguous(sizes(&[0, 3])).reshape(&[3, 0]).unwrap().sizes.as_slice(),
            [3, 0]
        );
        let spread = Layout::contiguous(sizes(&[1])).broadcast_to(&[6]).unwrap();
        assert_eq!(positions(&spread.reshape(&[2, 3]).unwrap()), [0; 6]);
    }

    #[test]
    fn contiguity_ignores_axes_of_length_one() {
        let base = Layout::contiguous(sizes(&[3, 1, 2]));
        assert!(base.is_contiguous());
        assert!(base.transpose(&[1, 0, 2]).is_contiguous());
        assert!(!base.transpose(&[2, 0, 1]).is_contiguous());
    }
}
