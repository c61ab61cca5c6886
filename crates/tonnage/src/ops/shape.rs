//! Other shapes and parts, most of them without a copy.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Shape, Source};
use tonnage_ops::shape;

use crate::dispatch::apply1;
use crate::part::Part;
use crate::tensor::Tensor;

/// A shape to take on: lengths, one of which may be -1 for what is left, or dims.
#[derive(Debug, Clone)]
pub struct Lengths(Asked);

#[derive(Debug, Clone)]
enum Asked {
    Numbers(SmallVec<[i64; 4]>),
    Shape(Shape),
}

impl<const N: usize> From<&[i64; N]> for Lengths {
    fn from(lengths: &[i64; N]) -> Lengths {
        Lengths(Asked::Numbers(lengths.as_slice().into()))
    }
}

impl From<&[i64]> for Lengths {
    fn from(lengths: &[i64]) -> Lengths {
        Lengths(Asked::Numbers(lengths.into()))
    }
}

impl From<&Vec<i64>> for Lengths {
    fn from(lengths: &Vec<i64>) -> Lengths {
        Lengths(Asked::Numbers(lengths.as_slice().into()))
    }
}

impl<const N: usize> From<[i64; N]> for Lengths {
    fn from(lengths: [i64; N]) -> Lengths {
        Lengths(Asked::Numbers(lengths.as_slice().into()))
    }
}

impl<const N: usize> From<[Dim; N]> for Lengths {
    fn from(dims: [Dim; N]) -> Lengths {
        Lengths(Asked::Shape(dims.into()))
    }
}

impl From<Shape> for Lengths {
    fn from(shape: Shape) -> Lengths {
        Lengths(Asked::Shape(shape))
    }
}

impl From<&Shape> for Lengths {
    fn from(shape: &Shape) -> Lengths {
        Lengths(Asked::Shape(shape.clone()))
    }
}

impl Tensor {
    /// The axes in another order; without a copy.
    #[track_caller]
    pub fn transpose(&self, order: &[i64]) -> Result<Tensor> {
        let source = Source::here();
        let shape = self.shape();
        let order = order
            .iter()
            .map(|a| shape.axis("transpose", *a))
            .collect::<Result<_>>()
            .map_err(|e| e.at(source))?;
        apply1(&shape::transpose::TRANSPOSE, smallvec![self.into()], Attrs::Order(order), source)
    }

    /// The last two axes swapped; without a copy.
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        let source = Source::here();
        let rank = self.rank();
        if rank < 2 {
            let what = format!("{} has no two axes to swap", self.shape());
            return Err(
                bad_argument("transpose", what, "use a tensor of rank 2 or more").at(source)
            );
        }
        let mut order: tonnage_core::Sizes = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        apply1(&shape::transpose::TRANSPOSE, smallvec![self.into()], Attrs::Order(order), source)
    }

    /// A part of the leading axes; without a copy.
    ///
    /// ```
    /// use tonnage::{Part, tensor};
    /// let x = tensor([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.slice(&[Part::ALL, (1..).into()])?.to_vec::<i32>()?, [2, 3, 5, 6]);
    /// assert_eq!(x.slice(&[(-1..).into(), Part::ALL.by(-1)])?.to_vec::<i32>()?, [6, 5, 4]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn slice(&self, parts: &[Part]) -> Result<Tensor> {
        let source = Source::here();
        let shape = self.shape();
        if parts.len() > shape.rank() {
            let what = format!("{} parts for the shape {shape}", parts.len());
            return Err(bad_argument("slice", what, "give at most one an axis").at(source));
        }
        let slices = shape
            .iter()
            .enumerate()
            .map(|(i, dim)| parts.get(i).unwrap_or(&Part::ALL).resolve("slice", dim))
            .collect::<Result<_>>()
            .map_err(|e| e.at(source))?;
        apply1(&shape::slice::SLICE, smallvec![self.into()], Attrs::Slices(slices), source)
    }

    /// The same elements under another shape: lengths, one of which may be -1 for what is left, or dims of
    /// other tensors, which may be open.
    ///
    /// ```
    /// let x = tonnage::range(0i32, 6, 1)?.reshape(&[2, -1])?;
    /// assert_eq!(x.shape().to_string(), "[2, 3]");
    /// let y = x.reshape([x.dim(1)?, x.dim(0)?])?;
    /// assert_eq!(y.shape().to_string(), "[3, 2]");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, lengths: impl Into<Lengths>) -> Result<Tensor> {
        let source = Source::here();
        let to = match lengths.into().0 {
            Asked::Numbers(lengths) => self.completed(&lengths).map_err(|e| e.at(source))?,
            Asked::Shape(shape) => shape,
        };
        apply1(&shape::reshape::RESHAPE, smallvec![self.into()], Attrs::Shape(to), source)
    }

    /// The length of an axis, negative ones counted from the back; while a function is traced it may be open.
    #[track_caller]
    pub fn dim(&self, axis: i64) -> Result<Dim> {
        let shape = self.shape();
        let axis = shape.axis("dim", axis).map_err(|e| e.at(Source::here()))?;
        Ok(shape[axis].clone())
    }

    fn completed(&self, lengths: &[i64]) -> Result<Shape> {
        let open = lengths.iter().filter(|n| **n == -1).count();
        if open > 1 || lengths.iter().any(|n| *n < -1) {
            let what = format!("the shape {lengths:?}");
            return Err(bad_argument("reshape", what, "use lengths, and -1 at most once"));
        }
        let known = lengths
            .iter()
            .filter(|n| **n >= 0)
            .fold(Dim::Known(1), |n, d| n.times(&Dim::Known(*d as usize)));
        let rest = self.shape().elements().divided_by(&known);
        Ok(lengths
            .iter()
            .map(|n| if *n < 0 { rest.clone() } else { Dim::Known(*n as usize) })
            .collect())
    }

    /// Stretched to a shape; without a copy.
    #[track_caller]
    pub fn broadcast_to(&self, to: impl Into<Shape>) -> Result<Tensor> {
        let attrs = Attrs::Shape(to.into());
        apply1(&shape::broadcast_to::BROADCAST_TO, smallvec![self.into()], attrs, Source::here())
    }
}
