//! What kernels ask of an element, and how they are picked by dtype.

use half::{bf16, f16};
use tonnage_core::Element;

/// An element that can be added and ranked.
pub trait Number: Element {
    /// Ranks below or level with every other value.
    const LOWEST: Self;
    /// 0.
    const ZERO: Self;

    /// The sum: integers wrap, 16-bit floats are added in f32 and rounded.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// Ranks higher: NaN above everything, level with NaN; 0 and -0 are level.
    fn above(self, other: Self) -> bool;

    /// Ranks lower, with NaN below everything: what is the least in the order where NaN shows.
    fn below(self, other: Self) -> bool;
}

macro_rules! floats {
    ($($T:ty, $zero:expr, |$a:ident, $b:ident| $sum:expr;)*) => {$(
        impl Number for $T {
            const LOWEST: $T = <$T>::NEG_INFINITY;
            const ZERO: $T = $zero;
            fn plus(self, other: $T) -> $T {
                let ($a, $b) = (self, other);
                $sum
            }
            #[inline(always)]
            fn above(self, other: $T) -> bool {
                self > other || (self.is_nan() && !other.is_nan())
            }
            #[inline(always)]
            fn below(self, other: $T) -> bool {
                self < other || (self.is_nan() && !other.is_nan())
            }
        }
    )*};
}

macro_rules! integers {
    ($($T:ty),*) => {$(
        impl Number for $T {
            const LOWEST: $T = <$T>::MIN;
            const ZERO: $T = 0;
            fn plus(self, other: $T) -> $T {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn above(self, other: $T) -> bool {
                self > other
            }
            #[inline(always)]
            fn below(self, other: $T) -> bool {
                self < other
            }
        }
    )*};
}

/// A float that factorizations compute in.
pub trait Real:
    Number
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Add<Output = Self>
{
    /// 0.5.
    const HALF: Self;
    /// The square root.
    #[must_use]
    fn root(self) -> Self;
    /// A number above 0 and below infinity.
    fn is_positive(self) -> bool;
}

macro_rules! reals {
    ($($T:ty),*) => {$(
        impl Real for $T {
            const HALF: $T = 0.5;
            fn root(self) -> $T {
                self.sqrt()
            }
            fn is_positive(self) -> bool {
                self > 0.0 && self < <$T>::INFINITY
            }
        }
    )*};
}

reals!(f64, f32);

floats! {
    f64, 0.0, |a, b| a + b;
    f32, 0.0, |a, b| a + b;
    f16, f16::ZERO, |a, b| f16::from_f32(a.to_f32() + b.to_f32());
    bf16, bf16::ZERO, |a, b| bf16::from_f32(a.to_f32() + b.to_f32());
}

integers!(i64, i32, i16, i8, u64, u32, u16, u8);

/// Runs a block with `$T` bound to the Rust type of a dtype that is a [`Number`]; for `bool`, returns
/// the error that the type rule of `$op` gives too.
macro_rules! with_number {
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
            tonnage_core::DType::I64 => arm!(i64),
            tonnage_core::DType::I32 => arm!(i32),
            tonnage_core::DType::I16 => arm!(i16),
            tonnage_core::DType::I8 => arm!(i8),
            tonnage_core::DType::U64 => arm!(u64),
            tonnage_core::DType::U32 => arm!(u32),
            tonnage_core::DType::U16 => arm!(u16),
            tonnage_core::DType::U8 => arm!(u8),
            dtype @ tonnage_core::DType::Bool => {
                let supported = "a float or an integer";
                let kind = tonnage_core::ErrorKind::DTypeUnsupported { op: $op, dtype, supported };
                return Err(kind.into());
            }
        }
    }};
}

/// As [`with_number`], for sums and products: their low bits are the same whatever the sign, so integers of one width share
/// a copy of the code.
macro_rules! with_sum {
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
            tonnage_core::DType::I64 | tonnage_core::DType::U64 => arm!(u64),
            tonnage_core::DType::I32 | tonnage_core::DType::U32 => arm!(u32),
            tonnage_core::DType::I16 | tonnage_core::DType::U16 => arm!(u16),
            tonnage_core::DType::I8 | tonnage_core::DType::U8 => arm!(u8),
            dtype @ tonnage_core::DType::Bool => {
                let supported = "a float or an integer";
                let kind = tonnage_core::ErrorKind::DTypeUnsupported { op: $op, dtype, supported };
                return Err(kind.into());
            }
        }
    }};
}

/// Runs a block with `$T` bound to an unsigned integer as wide as the dtype: for kernels that move
/// elements without looking at them, four copies of the code instead of thirteen.
macro_rules! with_width {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

/// Runs a block with `$T` bound to `f64` or `f32`; for any other dtype, returns the error that the type
/// rule of `$op` gives too.
macro_rules! with_real {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            tonnage_core::DType::F64 => {
                type $T = f64;
                $body
            }
            tonnage_core::DType::F32 => {
                type $T = f32;
                $body
            }
            dtype => {
                let supported = "f32 or f64";
                let kind = tonnage_core::ErrorKind::DTypeUnsupported { op: $op, dtype, supported };
                return Err(kind.into());
            }
        }
    };
}

pub(crate) use with_number;
pub(crate) use with_real;
pub(crate) use with_sum;
pub(crate) use with_width;
