//! Shapes and tensor types: what is known of a tensor without looking at a single byte of it.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use smallvec::SmallVec;

use crate::bytes::Bytes;
use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::heap::{Heap, Seen};

/// Concrete lengths or positions, one an axis; on the stack up to rank 4.
pub type Sizes = SmallVec<[usize; 4]>;

/// The lengths of a tensor's axes, outermost first.
///
/// ```
/// use tonnage_core::Shape;
/// let shape = Shape::from([2, 3]);
/// assert_eq!(shape.to_string(), "[2, 3]");
/// assert_eq!(shape.count(), Some(6));
/// ```
#[derive(PartialEq, Eq, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Shape(SmallVec<[Dim; 4]>);

impl Clone for Shape {
    // Every small eager op comes by here: pushing is quicker than collecting.
    #[inline]
    fn clone(&self) -> Shape {
        let mut shape = SmallVec::with_capacity(self.0.len());
        for dim in &self.0 {
            shape.push(dim.clone());
        }
        Shape(shape)
    }
}

impl Shape {
    /// The shape of a scalar: no axes.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// How many axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The product of the lengths, as an expression.
    pub fn elements(&self) -> Dim {
        self.0.iter().fold(Dim::Known(1), |n, d| n.times(d))
    }

    /// The number of elements, where all lengths are known and their product does not overflow.
    #[inline]
    pub fn count(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |n, d| n.checked_mul(d.known()?))
    }

    /// The lengths as numbers, where all are known.
    pub fn sizes(&self) -> Option<Sizes> {
        self.0.iter().map(Dim::known).collect()
    }

    /// The shape with every size that the data decide at its bound.
    pub fn most(&self) -> Option<Sizes> {
        self.0.iter().map(Dim::most).collect()
    }

    /// The shape with symbols replaced where `find` knows better.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> Shape {
        self.0.iter().map(|d| d.substitute(find)).collect()
    }

    /// An axis counted from the front, from one that may count from the back.
    ///
    /// ```
    /// use tonnage_core::Shape;
    /// assert_eq!(Shape::from([2, 3]).axis("sum", -1)?, 1);
    /// # Ok::<(), tonnage_core::Error>(())
    /// ```
    pub fn axis(&self, op: &'static str, axis: i64) -> Result<usize> {
        let rank = self.rank();
        let from_front = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(from_front) {
            Ok(a) if a < rank => Ok(a),
            _ => Err(ErrorKind::AxisOutOfRange { op, axis, rank }.into()),
        }
    }

    /// Several axes counted from the front, sorted; each may be named once.
    pub fn axes(&self, op: &'static str, axes: &[i64]) -> Result<Sizes> {
        let mut found: Sizes = axes.iter().map(|a| self.axis(op, *a)).collect::<Result<_>>()?;
        found.sort_unstable();
        match found.windows(2).find(|w| w[0] == w[1]) {
            Some(w) => Err(ErrorKind::DuplicateAxis { op, axis: w[0] }.into()),
            None => Ok(found),
        }
    }

    /// The shape that both broadcast to: aligned at the last axis, a length of 1 is broadcast.
    ///
    /// An open dim meets only itself or 1: a size that would have to be checked at run time would
    /// make the plan a guess.
    #[inline]
    pub fn broadcast(&self, other: &Shape, op: &'static str) -> Result<Shape> {
        if self == other {
            return Ok(self.clone());
        }
        let rank = self.rank().max(other.rank());
        let at = |shape: &Shape, i: usize| match (i + shape.rank()).checked_sub(rank) {
            Some(axis) => shape.0[axis].clone(),
            None => Dim::Known(1),
        };
        (0..rank)
            .map(|i| match (at(self, i), at(other, i)) {
                (a, b) if a == b => Ok(a),
                (a, b) if a.is(1) => Ok(b),
                (a, b) if b.is(1) => Ok(a),
                _ => Err(ErrorKind::ShapeMismatch {
                    op,
                    left: self.clone(),
                    right: other.clone(),
                    help: "counted from the last axis, lengths must be equal or 1".into(),
                }
                .into()),
            })
            .collect()
    }

    pub(crate) fn count_text(&self) -> String {
        self.elements().to_string()
    }
}

impl Deref for Shape {
    type Target = [Dim];
    #[inline]
    fn deref(&self) -> &[Dim] {
        &self.0
    }
}

impl DerefMut for Shape {
    fn deref_mut(&mut self) -> &mut [Dim] {
        &mut self.0
    }
}

impl FromIterator<Dim> for Shape {
    fn from_iter<I: IntoIterator<Item = Dim>>(iter: I) -> Shape {
        Shape(iter.into_iter().collect())
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Shape {
        Shape(iter.into_iter().map(Dim::Known).collect())
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        dims.into_iter().collect()
    }
}

impl From<&[usize]> for Shape {
    // Every small eager op comes by here: pushing is quicker than collecting.
    #[inline]
    fn from(dims: &[usize]) -> Shape {
        let mut shape = SmallVec::new();
        for dim in dims {
            shape.push(Dim::Known(*dim));
        }
        Shape(shape)
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        dims.into_iter().collect()
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl<const N: usize> From<[Dim; N]> for Shape {
    fn from(dims: [Dim; N]) -> Shape {
        dims.into_iter().collect()
    }
}

impl From<&[Dim]> for Shape {
    fn from(dims: &[Dim]) -> Shape {
        dims.iter().cloned().collect()
    }
}

impl From<Vec<Dim>> for Shape {
    fn from(dims: Vec<Dim>) -> Shape {
        dims.into_iter().collect()
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Shape {
        Shape::scalar()
    }
}

impl Heap for Shape {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.0.heap(seen)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{dim}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A dtype and a shape.
///
/// ```
/// use tonnage_core::{DType, TensorType};
/// let ty = TensorType::new(DType::F32, [2, 3]);
/// assert_eq!(ty.to_string(), "f32[2, 3]");
/// assert_eq!(ty.bytes("zeros")?.get(), 24);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
pub struct TensorType {
    /// Of its elements.
    pub dtype: DType,
    /// Of its axes.
    pub shape: Shape,
}

impl TensorType {
    /// That dtype and that shape.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> TensorType {
        TensorType { dtype, shape: shape.into() }
    }

    /// The bytes of its elements, lying close together; with sizes that the data decide at their
    /// bound. An error where no machine could address them, or where a dim is open.
    pub fn bytes(&self, op: &'static str) -> Result<Bytes> {
        let too_large =
            || ErrorKind::TooLarge { op, shape: self.shape.clone(), dtype: self.dtype }.into();
        let mut bytes = self.dtype.size();
        let mut empty = false;
        for dim in self.shape.iter() {
            let most = dim.most().ok_or_else(too_large)?;
            empty |= most == 0;
            bytes = bytes.checked_mul(most.max(1)).ok_or_else(too_large)?;
        }
        if bytes > isize::MAX as usize {
            return Err(too_large());
        }
        Ok(Bytes::of(if empty { 0 } else { bytes }))
    }

    /// The type with symbols replaced where `find` knows better.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> TensorType {
        TensorType { dtype: self.dtype, shape: self.shape.substitute(find) }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Heap for TensorType {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.shape.heap(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_aligns_at_the_last_axis() {
        let check = |a: &[usize], b: &[usize], expected: Option<&[usize]>| {
            let got = Shape::from(a).broadcast(&Shape::from(b), "add");
            match expected {
                Some(shape) => assert_eq!(got.unwrap(), Shape::from(shape)),
                None => assert!(matches!(
                    got.unwrap_err().kind(),
                    ErrorKind::ShapeMismatch { op: "add", .. }
                )),
            }
        };
        check(&[2, 3], &[3], Some(&[2, 3]));
        check(&[], &[0, 4], Some(&[0, 4]));
        check(&[1, 4], &[5, 1], Some(&[5, 4]));
        check(&[0], &[1], Some(&[0]));
        check(&[2, 3], &[2], None);
        check(&[0], &[2], None);
    }

    #[test]
    fn an_open_dim_meets_itself_and_one() {
        let n = Dim::symbol(Symbol::new("n"));
        let open: Shape = [n.clone(), Dim::Known(3)].into_iter().collect();
        assert_eq!(open.broadcast(&Shape::from([1, 3]), "add").unwrap(), open);
        assert_eq!(open.broadcast(&open, "add").unwrap(), open);
        assert!(open.broadcast(&Shape::from([4, 3]), "add").is_err());
    }

    #[test]
    fn sizes_that_overflow_are_refused_and_empty_ones_are_not() {
        let huge = TensorType::new(DType::F32, [usize::MAX, 2]);
        assert!(matches!(huge.bytes("fill").unwrap_err().kind(), ErrorKind::TooLarge { .. }));
        let empty = TensorType::new(DType::F32, [0, 5]);
        assert_eq!(empty.bytes("fill").unwrap(), Bytes::ZERO);
        let overflowing_though_empty = TensorType::new(DType::F32, [usize::MAX, usize::MAX, 0]);
        assert!(overflowing_though_empty.bytes("fill").is_err());
    }

    #[test]
    fn axes_count_from_both_ends_and_may_not_repeat() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(shape.axes("sum", &[-1, 0]).unwrap().as_slice(), [0, 2]);
        let kind = |axes: &[i64]| shape.axes("sum", axes).unwrap_err().kind().clone();
        assert_eq!(kind(&[3]), ErrorKind::AxisOutOfRange { op: "sum", axis: 3, rank: 3 });
        assert_eq!(kind(&[1, -2]), ErrorKind::DuplicateAxis { op: "sum", axis: 1 });
    }
}
