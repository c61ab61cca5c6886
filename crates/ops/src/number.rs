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
            fn above(self, other: $T) -> bool {
                self > other || (self.is_nan() && !other.is_nan())
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
            fn above(self, other: $T) -> bool {
                self > other
            }
        }
    )*};
}

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
        use tonnage_core::{DType, ErrorKind, bf16, f16};
        macro_rules! arm {
            ($rust:ty) => {{
                type $T = $rust;
                $body
            }};
        }
        match $dtype {
            DType::F64 => arm!(f64),
            DType::F32 => arm!(f32),
            DType::F16 => arm!(f16),
            DType::BF16 => arm!(bf16),
            DType::I64 => arm!(i64),
            DType::I32 => arm!(i32),
            DType::I16 => arm!(i16),
            DType::I8 => arm!(i8),
            DType::U64 => arm!(u64),
            DType::U32 => arm!(u32),
            DType::U16 => arm!(u16),
            DType::U8 => arm!(u8),
            dtype @ DType::Bool => {
                let supported = "a float or an integer";
                return Err(ErrorKind::DTypeUnsupported { op: $op, dtype, supported }.into());
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

pub(crate) use {with_number, with_width};
