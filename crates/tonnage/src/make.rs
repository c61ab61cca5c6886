//! Making tensors: from Rust data, fills and ranges.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Dim, FromScalar, Kind, Mark, Result, Scalar, Shape, Source, TensorType};
use tonnage_ops::shape;

use crate::convert::{self, Nested};
use crate::dispatch;
use crate::tensor::Tensor;

/// A tensor of nested Rust data: a number, arrays, slices, vectors.
///
/// ```
/// use tonnage::tensor;
/// let x = tensor([[1, 2, 3], [4, 5, 6]])?;
/// assert_eq!(x.ty().to_string(), "i32[2, 3]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn tensor<N: Nested>(data: N) -> Result<Tensor> {
    let source = Source::here();
    let mark = Mark { source, kind: Kind::Input };
    let array = convert::to_array(&data, mark).map_err(|e| e.at(source))?;
    Ok(Tensor::from_array(array))
}

/// The same number everywhere, in the number's own dtype. Takes a few bytes, whatever the shape.
///
/// ```
/// use tonnage::{constant, memory};
/// let x = constant(1.0f32, [1000, 1000, 1000])?;
/// assert!(x.is_recipe());
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn constant<T: FromScalar>(value: T, shape: impl Into<Shape>) -> Result<Tensor> {
    fill(value.to_scalar(), T::DTYPE, shape.into(), Source::here())
}

/// A number of any kind everywhere, in that dtype.
#[track_caller]
pub fn full(value: impl Into<Scalar>, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
    fill(value.into(), dtype, shape.into(), Source::here())
}

/// Zeros, f32.
#[track_caller]
pub fn zeros(shape: impl Into<Shape>) -> Result<Tensor> {
    fill(Scalar::Int(0), DType::F32, shape.into(), Source::here())
}

/// Ones, f32.
#[track_caller]
pub fn ones(shape: impl Into<Shape>) -> Result<Tensor> {
    fill(Scalar::Int(1), DType::F32, shape.into(), Source::here())
}

pub(crate) fn zeros_of(ty: &TensorType, source: Source) -> Result<Tensor> {
    fill(Scalar::Int(0), ty.dtype, ty.shape.clone(), source)
}

pub(crate) fn fill(value: Scalar, dtype: DType, shape: Shape, source: Source) -> Result<Tensor> {
    let attrs = Attrs::Fill { value, dtype, shape };
    dispatch::apply1(&shape::fill::FILL, smallvec![], attrs, source)
}

/// Counting from `start` up or down to, without, `stop`.
///
/// ```
/// let x = tonnage::range(0i32, 10, 3)?;
/// assert_eq!(x.to_vec::<i32>()?, [0, 3, 6, 9]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn range<T: FromScalar>(start: T, stop: T, step: T) -> Result<Tensor> {
    let source = Source::here();
    let (start, stop, step) = (start.to_scalar(), stop.to_scalar(), step.to_scalar());
    let len = match (start, stop, step) {
        (Scalar::Int(a), Scalar::Int(b), Scalar::Int(s)) if s != 0 => {
            let steps = if s > 0 { b - a + s - 1 } else { a - b - s - 1 } / s.abs();
            steps.max(0) as f64
        }
        (a, b, s) if s.to_f64() != 0.0 => ((b.to_f64() - a.to_f64()) / s.to_f64()).ceil().max(0.0),
        _ => return Err(bad_argument("range", "a step of 0", "use a step").at(source)),
    };
    if !len.is_finite() || len > isize::MAX as f64 {
        let what = format!("{start} to {stop} by {step} has no end");
        return Err(bad_argument("range", what, "use finite numbers").at(source));
    }
    let attrs = Attrs::Range { start, step, len: Dim::Known(len as usize), dtype: T::DTYPE };
    dispatch::apply1(&shape::range::RANGE, smallvec![], attrs, source)
}

/// The positions of an axis: 0, 1, 2 and so on, one less than its length, which may be open.
///
/// ```
/// use tonnage::{DType, positions, zeros};
/// let x = zeros([3, 2])?;
/// assert_eq!(positions(x.dim(0)?, DType::I32)?.to_vec::<i32>()?, [0, 1, 2]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn positions(len: impl Into<Dim>, dtype: DType) -> Result<Tensor> {
    let (start, step) = (Scalar::Int(0), Scalar::Int(1));
    let attrs = Attrs::Range { start, step, len: len.into(), dtype };
    dispatch::apply1(&shape::range::RANGE, smallvec![], attrs, Source::here())
}

/// `len` numbers at even distances from `start` to `stop`, both included. Takes a few bytes.
///
/// ```
/// let x = tonnage::linspace(0.0, 1.0, 5, tonnage::DType::F32)?;
/// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn linspace(start: f64, stop: f64, len: usize, dtype: DType) -> Result<Tensor> {
    let (start, stop) = (start.into(), stop.into());
    let attrs = Attrs::Linspace { start, stop, len: len.into(), dtype };
    dispatch::apply1(&shape::linspace::LINSPACE, smallvec![], attrs, Source::here())
}

/// The square matrix with ones on the main diagonal. Takes a few bytes.
///
/// ```
/// let x = tonnage::eye(2, tonnage::DType::F32)?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn eye(n: usize, dtype: DType) -> Result<Tensor> {
    let (rows, columns) = (n.into(), n.into());
    let attrs = Attrs::Eye { rows, columns, diagonal: 0, dtype };
    dispatch::apply1(&shape::eye::EYE, smallvec![], attrs, Source::here())
}

/// A matrix with ones on a diagonal: 0 is the main one, 1 the one above it. Takes a few bytes.
#[track_caller]
pub fn eye_of(
    rows: impl Into<Dim>,
    columns: impl Into<Dim>,
    diagonal: i64,
    dtype: DType,
) -> Result<Tensor> {
    let (rows, columns) = (rows.into(), columns.into());
    let attrs = Attrs::Eye { rows, columns, diagonal, dtype };
    dispatch::apply1(&shape::eye::EYE, smallvec![], attrs, Source::here())
}
