//! Other shapes and parts, most of them without a copy.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::{Attrs, AxisSlice, PadMode};
use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Dim, ErrorKind, OpDef, Result, Scalar, Shape, Source};
use tonnage_ops::{linalg, shape};

use crate::dispatch::{OpContext, TensorArg, apply, apply1};
use crate::part::{Axes, Part};
use crate::tensor::Tensor;

/// A shape to take on: lengths, one of which may be -1 for what is left, or dims.
#[derive(Debug, Clone)]
pub struct Lengths(RequestedShape);

#[derive(Debug, Clone)]
enum RequestedShape {
    Numbers(SmallVec<[i64; 4]>),
    Shape(Shape),
}

/// Lengths of these numbers. One that `i64` does not hold stays too large for any tensor.
macro_rules! numbers {
    ($($T:ty)*) => {$(
        impl From<&[$T]> for Lengths {
            fn from(lengths: &[$T]) -> Lengths {
                let length = |n: &$T| i64::try_from(*n).unwrap_or(i64::MAX);
                Lengths(RequestedShape::Numbers(lengths.iter().map(length).collect()))
            }
        }

        impl<const N: usize> From<&[$T; N]> for Lengths {
            fn from(lengths: &[$T; N]) -> Lengths {
                lengths.as_slice().into()
            }
        }

        impl<const N: usize> From<[$T; N]> for Lengths {
            fn from(lengths: [$T; N]) -> Lengths {
                lengths.as_slice().into()
            }
        }

        impl From<&Vec<$T>> for Lengths {
            fn from(lengths: &Vec<$T>) -> Lengths {
                lengths.as_slice().into()
            }
        }

        impl From<Vec<$T>> for Lengths {
            fn from(lengths: Vec<$T>) -> Lengths {
                lengths.as_slice().into()
            }
        }
    )*};
}

numbers!(i32 i64 usize);

impl<const N: usize> From<[Dim; N]> for Lengths {
    fn from(dims: [Dim; N]) -> Lengths {
        Lengths(RequestedShape::Shape(dims.into()))
    }
}

impl From<Shape> for Lengths {
    fn from(shape: Shape) -> Lengths {
        Lengths(RequestedShape::Shape(shape))
    }
}

impl From<&Shape> for Lengths {
    fn from(shape: &Shape) -> Lengths {
        Lengths(RequestedShape::Shape(shape.clone()))
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
        self.slice_at(slices, source)
    }

    pub(super) fn slice_at(&self, slices: Vec<AxisSlice>, source: Source) -> Result<Tensor> {
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
            RequestedShape::Numbers(lengths) => {
                self.completed(&lengths).map_err(|e| e.at(source))?
            }
            RequestedShape::Shape(shape) => shape,
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

    /// Broadcast to a shape; without a copy.
    #[track_caller]
    pub fn broadcast_to(&self, to: impl Into<Shape>) -> Result<Tensor> {
        let attrs = Attrs::Shape(to.into());
        apply1(&shape::broadcast_to::BROADCAST_TO, smallvec![self.into()], attrs, Source::here())
    }

    /// A new axis of length 1, where it stands in the result; without a copy.
    ///
    /// ```
    /// let x = tonnage::zeros([2, 3])?;
    /// assert_eq!(x.expand_dims(1)?.shape().to_string(), "[2, 1, 3]");
    /// assert_eq!(x.expand_dims(-1)?.shape().to_string(), "[2, 3, 1]");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn expand_dims(&self, axis: i64) -> Result<Tensor> {
        let (op, source) = (&shape::expand_dims::EXPAND_DIMS, Source::here());
        let axis = new_axis(op.name, self.rank(), axis).map_err(|e| e.at(source))?;
        apply1(op, smallvec![self.into()], Attrs::Axes(smallvec![axis]), source)
    }

    /// Without some axes of length 1, or without all of them ([`Axes::ALL`]); without a copy.
    ///
    /// Which axes are all is decided while tracing: a function whose lengths are open refuses a call in which another
    /// one has the length 1.
    #[track_caller]
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let (op, source) = (&shape::squeeze::SQUEEZE, Source::here());
        let shape = self.shape();
        let (axes, all) = match axes.into().0 {
            Some(axes) => (shape.axes(op.name, &axes).map_err(|e| e.at(source))?, false),
            None => ((0..shape.rank()).filter(|axis| shape[*axis].is(1)).collect(), true),
        };
        apply1(op, smallvec![self.into()], Attrs::Squeeze { axes, all }, source)
    }

    /// Backwards along axes; without a copy.
    #[track_caller]
    pub fn reverse(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let (op, source) = (&shape::reverse::REVERSE, Source::here());
        let axes = match axes.into().0 {
            Some(axes) => self.shape().axes(op.name, &axes).map_err(|e| e.at(source))?,
            None => (0..self.rank()).collect(),
        };
        apply1(op, smallvec![self.into()], Attrs::Axes(axes), source)
    }

    /// Cut along an axis into pieces of these lengths; without a copy.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let parts = tensor([1, 2, 3, 4, 5])?.split(&[2, 3], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 4, 5]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn split(&self, lengths: &[usize], axis: i64) -> Result<Vec<Tensor>> {
        let source = Source::here();
        let mut shape = self.shape();
        let axis = shape.axis("split", axis).map_err(|e| e.at(source))?;
        let pieces = lengths.iter().map(|n| Dim::Known(*n)).collect();
        if !shape[axis].depends_on_data() {
            return self.cut(axis, pieces, source);
        }
        // Whether the pieces make up the axis shows when the data have decided how long it is.
        shape[axis] = Dim::Known(lengths.iter().sum());
        source.stand_for(|| self.reshape(shape))?.cut(axis, pieces, source)
    }

    /// Cut along an axis into `parts` equal pieces; without a copy.
    #[track_caller]
    pub fn split_evenly(&self, parts: usize, axis: i64) -> Result<Vec<Tensor>> {
        let source = Source::here();
        let shape = self.shape();
        let axis = shape.axis("split", axis).map_err(|e| e.at(source))?;
        let each = shape[axis].divided_by(&Dim::Known(parts));
        if parts == 0 || each.times(&Dim::Known(parts)) != shape[axis] {
            let what = format!("{parts} equal pieces of axis {axis} of {shape}");
            let help = "use a number that divides it, or give the lengths with `split`";
            return Err(bad_argument("split", what, help).at(source));
        }
        self.cut(axis, vec![each; parts], source)
    }

    fn cut(&self, axis: usize, lengths: Vec<Dim>, source: Source) -> Result<Vec<Tensor>> {
        let attrs = Attrs::Split { axis, lengths };
        let parts =
            apply(&shape::split::SPLIT, smallvec![self.into()], attrs, OpContext::at(source))?;
        Ok(parts.into_vec())
    }

    /// The parts along an axis, which they lose; without a copy.
    #[track_caller]
    pub fn unstack(&self, axis: i64) -> Result<Vec<Tensor>> {
        let source = Source::here();
        let shape = self.shape();
        let axis = shape.axis("unstack", axis).map_err(|e| e.at(source))?;
        let Some(parts) = shape[axis].known() else {
            let what = format!("axis {axis} of {shape} is open: how many parts are there?");
            return Err(bad_argument("unstack", what, "fix it in the signature").at(source));
        };
        let attrs = Attrs::Join { axis, parts };
        let parts =
            apply(&shape::unstack::UNSTACK, smallvec![self.into()], attrs, OpContext::at(source))?;
        Ok(parts.into_vec())
    }

    /// Padding around the tensor: its widths before and behind each axis.
    ///
    /// ```
    /// use tonnage::{PadMode, tensor};
    /// let x = tensor([1, 2, 3])?;
    /// assert_eq!(x.pad(&[[1, 2]], PadMode::Constant(0.into()))?.to_vec::<i32>()?, [0, 1, 2, 3, 0, 0]);
    /// assert_eq!(x.pad(&[[2, 1]], PadMode::Reflect)?.to_vec::<i32>()?, [3, 2, 1, 2, 3, 2]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn pad(&self, widths: &[[usize; 2]], padding: PadMode) -> Result<Tensor> {
        let attrs = Attrs::Pad { widths: widths.to_vec(), padding };
        apply1(&shape::pad::PAD, smallvec![self.into()], attrs, Source::here())
    }

    /// The tensor again and again along each axis.
    #[track_caller]
    pub fn tile(&self, counts: &[usize]) -> Result<Tensor> {
        let attrs = Attrs::Repeats(counts.into());
        apply1(&shape::tile::TILE, smallvec![self.into()], attrs, Source::here())
    }

    /// Each element along an axis several times in a row.
    #[track_caller]
    pub fn repeat(&self, count: usize, axis: i64) -> Result<Tensor> {
        let source = Source::here();
        let axis = self.shape().axis("repeat", axis).map_err(|e| e.at(source))?;
        let attrs = Attrs::Repeat { axis, count };
        apply1(&shape::repeat::REPEAT, smallvec![self.into()], attrs, source)
    }

    /// The same bits as elements of another dtype of the same width.
    #[track_caller]
    pub fn bitcast(&self, dtype: DType) -> Result<Tensor> {
        let attrs = Attrs::DType(dtype);
        apply1(&shape::bitcast::BITCAST, smallvec![self.into()], attrs, Source::here())
    }

    /// Moved along an axis, with what falls off one end coming in at the other.
    #[track_caller]
    pub fn roll(&self, shift: i64, axis: i64) -> Result<Tensor> {
        let source = Source::here();
        let axis = self.shape().axis("roll", axis).map_err(|e| e.at(source))?;
        let attrs = Attrs::Roll { axis, shift };
        apply1(&shape::roll::ROLL, smallvec![self.into()], attrs, source)
    }

    /// A new last axis with a 1 at the position that each index names and 0 elsewhere.
    ///
    /// ```
    /// use tonnage::{DType, tensor};
    /// let x = tensor([2, 0])?.one_hot(3, DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn one_hot(&self, depth: usize, dtype: DType) -> Result<Tensor> {
        self.one_hot_of(depth, dtype, 1, 0)
    }

    /// [`Tensor::one_hot`] with other numbers than 1 and 0.
    #[track_caller]
    pub fn one_hot_of(
        &self,
        depth: usize,
        dtype: DType,
        on: impl Into<Scalar>,
        off: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let (on, off) = (on.into(), off.into());
        let attrs = Attrs::OneHot { depth: depth.into(), on, off, dtype };
        apply1(&shape::one_hot::ONE_HOT, smallvec![self.into()], attrs, Source::here())
    }

    /// The lower triangle of matrices: what is on a diagonal (0 is the main one) and below it.
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        let attrs = Attrs::Diagonal(diagonal);
        apply1(&linalg::tril::TRIL, smallvec![self.into()], attrs, Source::here())
    }

    /// The upper triangle of matrices: what is on a diagonal (0 is the main one) and above it.
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        let attrs = Attrs::Diagonal(diagonal);
        apply1(&linalg::triu::TRIU, smallvec![self.into()], attrs, Source::here())
    }

    /// Square matrices with this, along its last axis, on a diagonal and zeros elsewhere.
    #[track_caller]
    pub fn diag(&self, diagonal: i64) -> Result<Tensor> {
        let (op, source) = (&shape::diag::DIAG, Source::here());
        let shape = self.shape();
        let Some(length) = shape.last() else {
            let what = "a scalar has no axis to put on a diagonal";
            return Err(bad_argument(op.name, what, "use a tensor of rank 1 or more").at(source));
        };
        let more = usize::try_from(diagonal.unsigned_abs()).unwrap_or(usize::MAX);
        let rows = length.plus(&Dim::Known(more));
        let attrs = Attrs::Diag { rows: rows.clone(), columns: rows, diagonal };
        apply1(op, smallvec![self.into()], attrs, source)
    }

    /// A diagonal of matrices as a vector (0 is the main one); without a copy.
    #[track_caller]
    pub fn diag_part(&self, diagonal: i64) -> Result<Tensor> {
        let attrs = Attrs::Diagonal(diagonal);
        apply1(&shape::diag_part::DIAG_PART, smallvec![self.into()], attrs, Source::here())
    }

    /// The lengths of the axes as an i64 tensor: in a function whose sizes are open, what they turn out to be.
    #[track_caller]
    pub fn shape_tensor(&self) -> Result<Tensor> {
        let attrs = Attrs::Lengths { of: self.shape(), dtype: DType::I64 };
        apply1(&shape::lengths::LENGTHS, smallvec![], attrs, Source::here())
    }

    /// The number of elements as an i64 tensor: in a function whose sizes are open, what it turns out to be.
    #[track_caller]
    pub fn size_tensor(&self) -> Result<Tensor> {
        let of = [self.shape().elements()].into_iter().collect();
        let attrs = Attrs::Lengths { of, dtype: DType::I64 };
        apply1(&shape::lengths::LENGTHS, smallvec![], attrs, Source::here())?
            .reshape(Shape::scalar())
    }
}

/// Where a new axis stands, counted from the front of the result.
fn new_axis(op: &'static str, rank: usize, axis: i64) -> Result<usize> {
    let from_front = if axis < 0 { axis + rank as i64 + 1 } else { axis };
    match usize::try_from(from_front) {
        Ok(at) if at <= rank => Ok(at),
        _ => Err(ErrorKind::AxisOutOfRange { op, axis, rank: rank + 1 }.into()),
    }
}

/// Tensors one after the other along an axis.
///
/// ```
/// use tonnage::{concat, tensor};
/// let (a, b) = (tensor([[1, 2]])?, tensor([[3, 4], [5, 6]])?);
/// assert_eq!(concat(&[&a, &b], 0)?.to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn concat(parts: &[&Tensor], axis: i64) -> Result<Tensor> {
    let (op, source) = (&shape::concat::CONCAT, Source::here());
    let axis = match parts.first() {
        Some(first) => first.shape().axis(op.name, axis).map_err(|e| e.at(source))?,
        None => 0,
    };
    join(op, parts, axis, source)
}

/// Tensors of one type side by side along a new axis.
///
/// ```
/// use tonnage::{stack, tensor};
/// let (a, b) = (tensor([1, 2])?, tensor([3, 4])?);
/// assert_eq!(stack(&[&a, &b], -1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn stack(parts: &[&Tensor], axis: i64) -> Result<Tensor> {
    let (op, source) = (&shape::stack::STACK, Source::here());
    let rank = parts.first().map_or(0, |first| first.rank());
    let axis = new_axis(op.name, rank, axis).map_err(|e| e.at(source))?;
    join(op, parts, axis, source)
}

fn join(op: &'static OpDef, parts: &[&Tensor], axis: usize, source: Source) -> Result<Tensor> {
    let inputs = parts.iter().map(|part| TensorArg::Borrowed(part)).collect();
    apply1(op, inputs, Attrs::Join { axis, parts: parts.len() }, source)
}
