//! Element types, what class each is of, and how two of them promote.
//!
//! # Promotion
//!
//! Two tensors of one op must have the same dtype, or dtypes that promote to one of the two without
//! losing values:
//!
//! * `bool` promotes to any other dtype.
//! * Among signed integers, and among unsigned ones, the wider wins.
//! * An unsigned integer promotes to a *wider* signed one (`u8` and `i16`); `u64` with any signed
//!   integer, and equal widths of different sign, do not promote.
//! * An integer promotes to a float that holds all its values exactly: 8 bits to any float, 16 bits
//!   to `f32` and `f64`, 32 bits to `f64`. `i64` and `u64` do not promote to any float.
//! * Among floats the wider wins; `f16` and `bf16` promote to neither of the two.
//!
//! Everything else is an error that asks for a `cast`: a silent loss, or a silently wider result, is
//! memory and precision that nobody asked for. A Rust number on one side of an operator takes the
//! tensor's dtype, and is an error where it can't.
//!
//! Decision: `docs/decisions/promotion.md`.

use std::fmt;

use bytemuck::Pod;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it all")]
pub enum DType {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

/// What arithmetic a dtype has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `f64 f32 f16 bf16`
    Float,
    /// `i64 i32 i16 i8`
    Signed,
    /// `u64 u32 u16 u8`
    Unsigned,
    /// `bool`
    Bool,
}

impl DType {
    /// All of them.
    pub const ALL: [DType; 13] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
    ];

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// What arithmetic it has.
    #[inline]
    pub const fn class(self) -> Class {
        match self {
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => Class::Float,
            DType::I64 | DType::I32 | DType::I16 | DType::I8 => Class::Signed,
            DType::U64 | DType::U32 | DType::U16 | DType::U8 => Class::Unsigned,
            DType::Bool => Class::Bool,
        }
    }

    /// True for the four floats.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Float)
    }

    /// True for the eight integers.
    #[inline]
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), Class::Signed | Class::Unsigned)
    }

    /// The dtype that a tile computes in: `f32` for the two 16-bit floats, itself otherwise.
    #[inline]
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The user's name: `f32`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F64 => "f64",
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::I16 => "i16",
            DType::I8 => "i8",
            DType::U64 => "u64",
            DType::U32 => "u32",
            DType::U16 => "u16",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// The dtype that both promote to, by the rules at the top of this file.
    ///
    /// ```
    /// use tonnage_core::DType;
    /// assert_eq!(DType::Bool.promote(DType::F16), Some(DType::F16));
    /// assert_eq!(DType::U8.promote(DType::I16), Some(DType::I16));
    /// assert_eq!(DType::I64.promote(DType::F32), None);
    /// ```
    #[inline]
    pub const fn promote(self, other: DType) -> Option<DType> {
        if self.promotes_to(other) {
            Some(other)
        } else if other.promotes_to(self) {
            Some(self)
        } else {
            None
        }
    }

    /// True where every value of `self` is a value of `other`, and the rules above say so.
    #[inline]
    pub const fn promotes_to(self, other: DType) -> bool {
        if self as u8 == other as u8 {
            return true;
        }
        let (from, to) = (self.size(), other.size());
        match (self.class(), other.class()) {
            (Class::Bool, _) => true,
            (Class::Signed, Class::Signed)
            | (Class::Unsigned, Class::Unsigned)
            | (Class::Unsigned, Class::Signed)
            | (Class::Float, Class::Float) => from < to,
            (Class::Signed | Class::Unsigned, Class::Float) => match other {
                DType::F64 => from <= 4,
                DType::F32 => from <= 2,
                _ => from <= 1,
            },
            _ => false,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A boolean as it lies in memory: one byte, 0 or 1. Rust's `bool` has invalid bytes, which a buffer
/// of bytes may not be read as without `unsafe`; any byte but 0 counts as true here.
#[derive(Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// As Rust's own.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(value as u8)
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

/// A Rust type that lies in memory as a dtype does.
pub trait Element: Pod + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The dtype.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })*
    };
}

elements! {
    f64 => F64, f32 => F32, f16 => F16, bf16 => BF16,
    i64 => I64, i32 => I32, i16 => I16, i8 => I8,
    u64 => U64, u32 => U32, u16 => U16, u8 => U8, Bool => Bool,
}

/// Runs a block with a type alias bound to the Rust type of a dtype.
///
/// ```
/// use tonnage_core::{DType, with_element};
/// let dtype = DType::F16;
/// let size = with_element!(dtype, T => size_of::<T>());
/// assert_eq!(size, dtype.size());
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = $crate::bf16;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DType::Bool => {
                type $T = $crate::Bool;
                $body
            }
        }
    };
}

crate::heap::nothing!(DType);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_symmetric_idempotent_and_never_narrows() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), Some(a));
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} {b}");
                if let Some(c) = a.promote(b) {
                    assert!(c == a || c == b, "{a} {b} gave a third dtype {c}");
                    assert!(c.size() >= a.size() && c.size() >= b.size());
                }
            }
        }
    }

    #[test]
    fn promotion_follows_the_written_rules() {
        use DType::*;
        for (a, b, expected) in [
            (Bool, I8, Some(I8)),
            (I8, I64, Some(I64)),
            (U8, U32, Some(U32)),
            (U8, I16, Some(I16)),
            (U16, I16, None),
            (U64, I64, None),
            (I8, BF16, Some(BF16)),
            (I8, F16, Some(F16)),
            (I16, F16, None),
            (I16, F32, Some(F32)),
            (I32, F32, None),
            (I32, F64, Some(F64)),
            (I64, F64, None),
            (F16, BF16, None),
            (F16, F32, Some(F32)),
            (BF16, F64, Some(F64)),
        ] {
            assert_eq!(a.promote(b), expected, "{a} {b}");
        }
    }
}
