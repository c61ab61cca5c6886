//! Floats that kernels compute with: `f64` and `f32` as they are, `f16` and `bf16` in `f32`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use tonnage_core::{bf16, f16};

use crate::linalg::gemm::{Compute, GemmOutput, Reads};
use tonnage_simd::{Isa, float};

/// What floats are computed in.
pub trait Wide:
    Compute
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// 1.
    const ONE: Self;
    /// Below every number.
    const LOWEST: Self;

    /// Rounded from a wider one.
    fn of(x: f64) -> Self;
    /// `self * a + b`, rounded once where that is an instruction.
    fn fma<I: Isa>(self, a: Self, b: Self) -> Self;
    /// e to that power.
    fn exp<I: Isa>(self) -> Self;
    /// The natural logarithm.
    fn ln<I: Isa>(self) -> Self;
    /// The square root.
    fn root(self) -> Self;
    /// Neither an infinity nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! wide {
    ($($T:ty),*) => {$(
        impl Wide for $T {
            const ONE: $T = 1.0;
            const LOWEST: $T = <$T>::NEG_INFINITY;
            #[inline(always)]
            fn of(x: f64) -> $T {
                x as $T
            }
            #[inline(always)]
            fn fma<I: Isa>(self, a: $T, b: $T) -> $T {
                if I::FMA { self.mul_add(a, b) } else { I::element(self) * a + b }
            }
            #[inline(always)]
            fn exp<I: Isa>(self) -> $T {
                float::exp::<I, $T>(self)
            }
            #[inline(always)]
            fn ln<I: Isa>(self) -> $T {
                float::log::<I, $T>(self)
            }
            #[inline(always)]
            fn root(self) -> $T {
                self.sqrt()
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$T>::is_finite(self)
            }
        }
    )*};
}

wide!(f64, f32);

/// A float dtype that is read into what it is computed in, and rounded from it.
pub trait Float: GemmOutput<Compute: Wide> + Reads<<Self as GemmOutput>::Compute> {}

impl Float for f64 {}

impl Float for f32 {}

impl Float for f16 {}

impl Float for bf16 {}

/// Runs a block with `$T` bound to a float type; for any other dtype, returns the error that the type rule of `$op`
/// gives too.
macro_rules! with_float {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {{
        macro_rules! arm {
            ($rust:ty) => {{
                type $T = $rust;
                $body
            }};
        }
        match $dtype {
            tonnage_core::DType::F64 => arm!(f64),
            tonnage_core::DType::F32 => arm!(f32),
            tonnage_core::DType::F16 => arm!(tonnage_core::f16),
            tonnage_core::DType::BF16 => arm!(tonnage_core::bf16),
            dtype => {
                let supported = "f64, f32, f16 or bf16 (cast first)";
                let kind = tonnage_core::ErrorKind::DTypeUnsupported { op: $op, dtype, supported };
                Err(kind.into())
            }
        }
    }};
}

pub(crate) use with_float;
