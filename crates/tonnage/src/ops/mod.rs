//! The ops as methods of the tensor, a file for each kind. Each is its row's name; `self` is borrowed
//! unless the op can work in place (see [`Elementwise`]).

mod collective;
mod einsum;
mod elementwise;
mod factors;
mod index;
mod linalg;
mod nn;
mod reduce;
mod select;
mod shape;
mod signal;
mod space;
mod special;

pub use einsum::einsum;
pub use elementwise::Elementwise;
pub use nn::{Attention, BatchNormOutput};
pub use reduce::Scan;
pub use select::Index;
pub use shape::{Lengths, concat, stack};
pub use space::meshgrid;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{DType, OpDef, Result, Scalar, Shape, Source};

use crate::dispatch::{TensorArg, TensorArgs, apply1};
use crate::make;
use crate::tensor::Tensor;

/// The right side of an elementwise op: a tensor, borrowed or moved in, or a number, which takes the
/// tensor's dtype.
pub trait Operand {
    #[doc(hidden)]
    fn side(&self) -> OperandValue<'_>;
}

#[doc(hidden)]
pub enum OperandValue<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

impl Operand for &Tensor {
    fn side(&self) -> OperandValue<'_> {
        OperandValue::Tensor(self)
    }
}

impl Operand for Tensor {
    fn side(&self) -> OperandValue<'_> {
        OperandValue::Tensor(self)
    }
}

macro_rules! numbers {
    ($($T:ty),*) => {$(
        impl Operand for $T {
            fn side(&self) -> OperandValue<'_> {
                OperandValue::Number((*self).into())
            }
        }
    )*};
}
numbers!(f64, f32, i64, i32, i16, i8, u64, u32, u16, u8, usize, bool);

/// A number as a tensor of the other side's dtype.
pub(crate) fn number(
    op: &'static OpDef,
    value: Scalar,
    dtype: DType,
    source: Source,
) -> Result<Tensor> {
    if !value.fits(dtype) {
        let what = format!("{value} does not fit a tensor of dtype {dtype}");
        let help = "cast the tensor, or use a number of its kind";
        return Err(bad_argument(op.name, what, help).at(source));
    }
    make::fill(value, dtype, Shape::scalar(), source)
}

pub(crate) fn binary_op(
    op: &'static OpDef,
    left: TensorArg,
    right: impl Operand,
    source: Source,
) -> Result<Tensor> {
    let side = right.side();
    let right = operand(op, &side, left.tensor().dtype(), source)?;
    let inputs: TensorArgs = smallvec![left, right];
    apply1(op, inputs, Attrs::None, source)
}

/// A side as an input; a number becomes a tensor of that dtype.
pub(crate) fn operand<'a>(
    op: &'static OpDef,
    side: &OperandValue<'a>,
    dtype: DType,
    source: Source,
) -> Result<TensorArg<'a>> {
    match side {
        OperandValue::Tensor(tensor) => Ok(TensorArg::Borrowed(tensor)),
        OperandValue::Number(value) => Ok(TensorArg::Owned(number(op, *value, dtype, source)?)),
    }
}
