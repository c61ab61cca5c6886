//! One number of any dtype, as attributes and tile programs hold it.

use std::fmt;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::dtype::{Bool, Class, DType, Element};
use crate::rounding::{integer_to_odd, to_odd, unsigned_to_odd};

/// A number with no dtype of its own yet: it takes that of the tensor it meets.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Scalar {
    /// A float.
    Float(f64),
    /// An integer of any width and sign.
    Int(i128),
    /// A boolean.
    Bool(bool),
}

impl Scalar {
    /// As a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Float(x) => x,
            Scalar::Int(x) => x as f64,
            Scalar::Bool(x) => x as u8 as f64,
        }
    }

    /// As a single float: rounded once.
    fn to_f32(self) -> f32 {
        match self {
            Scalar::Int(x) => x as f32,
            other => other.to_f64() as f32,
        }
    }

    /// As a single float that rounds to 16 bits as the number itself does.
    fn to_odd(self) -> f32 {
        match self {
            Scalar::Int(x) => match (i64::try_from(x), u64::try_from(x)) {
                (Ok(x), _) => to_odd(integer_to_odd(x)),
                (_, Ok(x)) => to_odd(unsigned_to_odd(x)),
                _ => to_odd(x as f64), // no dtype holds it
            },
            other => to_odd(other.to_f64()),
        }
    }

    /// As an integer, cut off towards zero.
    pub fn to_i128(self) -> i128 {
        match self {
            Scalar::Float(x) => x as i128,
            Scalar::Int(x) => x,
            Scalar::Bool(x) => x as i128,
        }
    }

    /// True where it can stand for a value of that dtype without changing its meaning: a float only
    /// for floats, an integer within the dtype's range, a boolean for anything.
    ///
    /// ```
    /// use tonnage_core::{DType, Scalar};
    /// assert!(Scalar::from(2).fits(DType::F32));
    /// assert!(!Scalar::from(2.5).fits(DType::I32));
    /// assert!(!Scalar::from(300).fits(DType::U8));
    /// ```
    pub fn fits(self, dtype: DType) -> bool {
        match (self, dtype.class()) {
            (_, Class::Float) | (Scalar::Bool(_), _) => true,
            (Scalar::Float(_), _) => false,
            (Scalar::Int(x), Class::Bool) => x == 0 || x == 1,
            (Scalar::Int(x), Class::Signed) => {
                let bits = 8 * dtype.size() as u32 - 1;
                x >= -(1i128 << bits) && x < (1i128 << bits)
            }
            (Scalar::Int(x), Class::Unsigned) => x >= 0 && x < (1i128 << (8 * dtype.size())),
        }
    }

    /// The same bits: what "equal" means for attributes, where NaN equals NaN and 0 is not -0.
    fn key(self) -> (u8, u128) {
        match self {
            Scalar::Float(x) => (0, x.to_bits() as u128),
            Scalar::Int(x) => (1, x as u128),
            Scalar::Bool(x) => (2, x as u128),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scalar {}

impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Int(x) => write!(f, "{x}"),
            Scalar::Bool(x) => write!(f, "{x}"),
        }
    }
}

/// An element that a scalar converts to, and back.
pub trait FromScalar: Element {
    /// Converts as `cast` does: floats are cut off towards zero and kept within the range.
    fn from_scalar(scalar: Scalar) -> Self;
    /// The element as a scalar.
    fn to_scalar(self) -> Scalar;
}

macro_rules! from_scalar {
    ($($T:ty, $variant:ident, $via:ty, |$s:ident| $from:expr, |$x:ident| $to:expr;)*) => {$(
        impl FromScalar for $T {
            fn from_scalar($s: Scalar) -> $T {
                $from
            }
            fn to_scalar(self) -> Scalar {
                let $x = self;
                Scalar::$variant($to as $via)
            }
        }
        impl From<$T> for Scalar {
            fn from(value: $T) -> Scalar {
                value.to_scalar()
            }
        }
    )*};
}

macro_rules! integer {
    ($($T:ty),*) => {
        from_scalar! {$(
            $T, Int, i128,
            |s| match s {
                Scalar::Float(x) => x as $T,
                other => other.to_i128() as $T,
            },
            |x| x;
        )*}
    };
}

integer!(i64, i32, i16, i8, u64, u32, u16, u8);

from_scalar! {
    f64, Float, f64, |s| s.to_f64(), |x| x;
    f32, Float, f64, |s| s.to_f32(), |x| x;
    f16, Float, f64, |s| f16::from_f32(s.to_odd()), |x| x.to_f64();
    bf16, Float, f64, |s| bf16::from_f32(s.to_odd()), |x| x.to_f64();
    Bool, Bool, bool,
        |s| Bool::from(match s { Scalar::Float(x) => x != 0.0, other => other.to_i128() != 0 }),
        |x| x.get();
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        Scalar::Bool(value)
    }
}

impl From<usize> for Scalar {
    fn from(value: usize) -> Scalar {
        Scalar::Int(value as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_by_bits_so_that_equal_attributes_mean_equal_results() {
        assert_eq!(Scalar::from(f64::NAN), Scalar::from(f64::NAN));
        assert_ne!(Scalar::from(0.0), Scalar::from(-0.0));
        assert_ne!(Scalar::from(1), Scalar::from(1.0));
    }

    #[test]
    fn casting_cuts_off_and_saturates() {
        assert_eq!(i32::from_scalar(3.9.into()), 3);
        assert_eq!(u8::from_scalar((-3.9).into()), 0);
        assert_eq!(i64::from_scalar(f64::NAN.into()), 0);
        assert_eq!(i8::from_scalar(1e9.into()), 127);
        assert!(Bool::from_scalar(0.5.into()).get());
    }

    #[test]
    fn narrow_floats_are_rounded_once() {
        // A little above the middle of two neighbours, which f64 (the first) or f32 cannot see.
        let x = (1i64 << 60) + (1 << 36) + 1;
        assert_eq!(f32::from_scalar(x.into()), ((1i64 << 60) + (1 << 37)) as f32);
        let x = (1i64 << 60) + (1 << 52) + 1;
        assert_eq!(bf16::from_scalar(x.into()).to_f64(), ((1i64 << 60) + (1 << 53)) as f64);
        let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(f16::from_scalar(x.into()).to_f64(), 1.0 + 2f64.powi(-10));
    }
}
