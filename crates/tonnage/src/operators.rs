//! `+ - * /` and `-x` on tensors, references, numbers, and results of other operators.
//!
//! A result of an operator meets a tensor without a `?` in between, `(&a * &b + &c)?`. It cannot meet a
//! number so: neither `Result` nor `f64` is ours, and Rust lets nobody else join them. `((x * 2.0)? + 1.0)?`
//! is the way.
//!
//! A tensor that is moved in lends its bytes to the result where nobody else holds them: who allocates can
//! be read in the code.
//!
//! Decision: `docs/decisions/operators-and-results.md`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{OpDef, Result, Source};
use tonnage_ops::math;

use crate::dispatch::{TensorArg, apply1};
use crate::ops::number;
use crate::tensor::Tensor;

/// One side of an operator.
pub(crate) enum OperatorSide<'a> {
    Tensor(TensorArg<'a>),
    Number(tonnage_core::Scalar),
    Failed(tonnage_core::Error),
}

impl From<Tensor> for OperatorSide<'_> {
    fn from(tensor: Tensor) -> Self {
        OperatorSide::Tensor(TensorArg::Owned(tensor))
    }
}

impl<'a> From<&'a Tensor> for OperatorSide<'a> {
    fn from(tensor: &'a Tensor) -> OperatorSide<'a> {
        OperatorSide::Tensor(TensorArg::Borrowed(tensor))
    }
}

impl From<Result<Tensor>> for OperatorSide<'_> {
    fn from(result: Result<Tensor>) -> Self {
        match result {
            Ok(tensor) => OperatorSide::Tensor(TensorArg::Owned(tensor)),
            Err(error) => OperatorSide::Failed(error),
        }
    }
}

fn operate(
    op: &'static OpDef,
    left: OperatorSide,
    right: OperatorSide,
    source: Source,
) -> Result<Tensor> {
    let (left, right) = match (left, right) {
        (OperatorSide::Failed(error), _) | (_, OperatorSide::Failed(error)) => return Err(error),
        (OperatorSide::Tensor(left), OperatorSide::Tensor(right)) => (left, right),
        (OperatorSide::Tensor(left), OperatorSide::Number(value)) => {
            let right = number(op, value, left.tensor().dtype(), source)?;
            (left, TensorArg::Owned(right))
        }
        (OperatorSide::Number(value), OperatorSide::Tensor(right)) => {
            let left = number(op, value, right.tensor().dtype(), source)?;
            (TensorArg::Owned(left), right)
        }
        (OperatorSide::Number(a), OperatorSide::Number(b)) => {
            let help = "use Rust's own operators";
            return Err(tonnage_core::error::bad_argument(op.name, format!("{a} and {b}"), help));
        }
    };
    apply1(op, smallvec![left, right], Attrs::None, source)
}

macro_rules! operator {
    ($Trait:ident, $method:ident, $op:path; $($L:ty, $R:ty;)*) => {$(
        impl $Trait<$R> for $L {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, right: $R) -> Result<Tensor> {
                operate(&$op, self.into(), right.into(), Source::here())
            }
        }
    )*};
}

macro_rules! operators {
    ($($Trait:ident, $method:ident, $op:path;)*) => {$(
        operator! { $Trait, $method, $op;
            Tensor, Tensor;
            Tensor, &Tensor;
            &Tensor, Tensor;
            &Tensor, &Tensor;
            Result<Tensor>, Tensor;
            Result<Tensor>, &Tensor;
            Tensor, Result<Tensor>;
            &Tensor, Result<Tensor>;
        }
        numbers! { $Trait, $method, $op; f64 i64 }
    )*};
}

macro_rules! numbers {
    ($Trait:ident, $method:ident, $op:path; $($T:ty)*) => {$(
        operator! { $Trait, $method, $op;
            Tensor, $T;
            &Tensor, $T;
            $T, Tensor;
            $T, &Tensor;
        }
    )*};
}

macro_rules! number_sides {
    ($($T:ty)*) => {$(
        impl From<$T> for OperatorSide<'_> {
            fn from(value: $T) -> Self {
                OperatorSide::Number(value.into())
            }
        }
    )*};
}

// One float and one integer: with more, a literal's type would be a guess that Rust refuses to make.
number_sides! { f64 i64 }

operators! {
    Add, add, math::add::ADD;
    Sub, sub, math::sub::SUB;
    Mul, mul, math::mul::MUL;
    Div, div, math::div::DIV;
}

impl Neg for Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        apply1(&math::neg::NEG, smallvec![self.into()], Attrs::None, Source::here())
    }
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        apply1(&math::neg::NEG, smallvec![self.into()], Attrs::None, Source::here())
    }
}
