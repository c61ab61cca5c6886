//! The primitives by name, and the function of each for a dtype.
//!
//! What an interpreter of tile programs resolves once and then calls per tile. Functions take bytes,
//! so that one type serves every dtype that tiles compute in: 16-bit floats are
//! `f32` by then; a call costs a branch on the level and a check of alignment
//! and length. Operands of two and more have the output's length, or one element.

use serde::{Deserialize, Serialize};
use tonnage_core::{Bool, DType};

use super::elementwise as map;
use super::level::Level;
use super::map::{bytes1, bytes2, bytes3};

/// `f(level, out, a)`
pub type UnaryFn = fn(Level, &mut [u8], &[u8]);

/// `f(level, out, a, b)`
pub type BinaryFn = fn(Level, &mut [u8], &[u8], &[u8]);

/// `f(level, out, a, b, c)`
pub type TernaryFn = fn(Level, &mut [u8], &[u8], &[u8], &[u8]);

macro_rules! primitives {
    ($(#[$doc:meta])* $Enum:ident: $Fn:ident, $table:ident;
        $($class:ident { $($Name:ident)* })*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the maps of the same names say what they do")]
        pub enum $Enum { $($($Name,)*)* }

        impl $Enum {
            /// All of them.
            pub const ALL: &[$Enum] = &[$($($Enum::$Name,)*)*];

            /// The function for a dtype, or `None` where it has no meaning there.
            pub fn function(self, dtype: DType) -> Option<$Fn> {
                match self { $($($Enum::$Name => $table!($class, map::$Name, dtype),)*)* }
            }
        }
    };
}

/// By dtype: floats, then what else there is.
macro_rules! by_dtype {
    ($dtype:expr, $bytes:ident, $M:ty, [$($extra:tt)*]) => {
        match $dtype {
            DType::F64 => Some($bytes::<f64, $M>),
            DType::F32 => Some($bytes::<f32, $M>),
            $($extra)*
            #[allow(unreachable_patterns, reason = "some tables are complete")]
            _ => None,
        }
    };
}

macro_rules! integers {
    ($dtype:expr, $bytes:ident, $M:ty, [$($extra:tt)*]) => {
        match $dtype {
            DType::I64 => Some($bytes::<i64, $M>),
            DType::I32 => Some($bytes::<i32, $M>),
            DType::I16 => Some($bytes::<i16, $M>),
            DType::I8 => Some($bytes::<i8, $M>),
            DType::U64 => Some($bytes::<u64, $M>),
            DType::U32 => Some($bytes::<u32, $M>),
            DType::U16 => Some($bytes::<u16, $M>),
            DType::U8 => Some($bytes::<u8, $M>),
            $($extra)*
            _ => None,
        }
    };
}

/// Integers where the sign does not matter: the low bits are the same, so both signs share a loop.
macro_rules! signless {
    ($dtype:expr, $bytes:ident, $M:ty, [$($extra:tt)*]) => {
        match $dtype {
            DType::I64 | DType::U64 => Some($bytes::<u64, $M>),
            DType::I32 | DType::U32 => Some($bytes::<u32, $M>),
            DType::I16 | DType::U16 => Some($bytes::<u16, $M>),
            DType::I8 | DType::U8 => Some($bytes::<u8, $M>),
            $($extra)*
            _ => None,
        }
    };
}

macro_rules! unary {
    (number, $M:ty, $dtype:expr) => {
        by_dtype!($dtype, bytes1, $M, [other => integers!(other, bytes1, $M, []),])
    };
    (wrapping, $M:ty, $dtype:expr) => {
        by_dtype!($dtype, bytes1, $M, [other => signless!(other, bytes1, $M, []),])
    };
    (float, $M:ty, $dtype:expr) => { by_dtype!($dtype, bytes1, $M, []) };
    (truth, $M:ty, $dtype:expr) => { by_dtype!($dtype, bytes1, $M, []) };
    (bits, $M:ty, $dtype:expr) => {
        signless!($dtype, bytes1, $M, [DType::Bool => Some(bytes1::<Bool, map::NotTruth>),])
    };
}

macro_rules! binary {
    (number, $M:ty, $dtype:expr) => {
        by_dtype!($dtype, bytes2, $M, [other => integers!(other, bytes2, $M, []),])
    };
    (wrapping, $M:ty, $dtype:expr) => {
        by_dtype!($dtype, bytes2, $M, [other => signless!(other, bytes2, $M, []),])
    };
    (same, $M:ty, $dtype:expr) => {
        by_dtype!($dtype, bytes2, $M, [other => signless!(other, bytes2, $M,
            [DType::Bool => Some(bytes2::<Bool, map::OfTruth<$M>>),]),])
    };
    (float, $M:ty, $dtype:expr) => { by_dtype!($dtype, bytes2, $M, []) };
    (order, $M:ty, $dtype:expr) => {
        by_dtype!($dtype, bytes2, $M, [other => integers!(other, bytes2, $M,
            [DType::Bool => Some(bytes2::<Bool, map::OfTruth<$M>>),]),])
    };
    (compare, $M:ty, $dtype:expr) => {
        by_dtype!($dtype, bytes2, $M, [other => integers!(other, bytes2, $M,
            [DType::Bool => Some(bytes2::<Bool, map::OfTruth<$M>>),]),])
    };
    (bits, $M:ty, $dtype:expr) => {
        signless!($dtype, bytes2, $M, [DType::Bool => Some(bytes2::<Bool, map::OfTruth<$M>>),])
    };
    (left, $M:ty, $dtype:expr) => { signless!($dtype, bytes2, $M, []) };
    (right, $M:ty, $dtype:expr) => { integers!($dtype, bytes2, $M, []) };
}

primitives! {
    /// Functions of one element. The last three give [`Bool`], the others their operand's dtype.
    ///
    /// ```
    /// use tonnage_core::DType;
    /// use tonnage_simd::{level, prim::Unary};
    /// let (a, mut out) = ([0.0f32, 1.0], [0.0f32; 2]);
    /// if let Some(exp) = Unary::Exp.function(DType::F32) {
    ///     exp(level(), bytemuck::cast_slice_mut(&mut out), bytemuck::cast_slice(&a));
    /// }
    /// assert_eq!(out, [1.0, std::f32::consts::E]);
    /// assert!(Unary::Exp.function(DType::I32).is_none());
    /// ```
    Unary: UnaryFn, unary;
    number { Abs Sign }
    wrapping { Neg Square }
    bits { Not }
    float {
        Floor Ceil Round Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan
        Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid Softplus Silu Gelu GeluTanh Erf Erfc Lgamma Digamma
    }
    truth { IsNan IsInf IsFinite }
}

primitives! {
    /// Functions of two elements. The comparisons give [`Bool`], the others their operands' dtype.
    Binary: BinaryFn, binary;
    wrapping { Add Sub Mul }
    number { Div FloorDiv Mod Pow }
    order { Max Min }
    float { Atan2 Hypot Polygamma }
    same { Equal NotEqual }
    compare { Less LessEqual Greater GreaterEqual }
    bits { And Or Xor }
    left { Shl }
    right { Shr }
}

/// Functions of three elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ternary {
    /// `if a { b } else { c }`: the first operand is [`Bool`], the dtype that of the others.
    Select,
    /// `a * b + c`
    MulAdd,
}

impl Ternary {
    /// All of them.
    pub const ALL: &[Ternary] = &[Ternary::Select, Ternary::MulAdd];

    /// The function for a dtype, or `None` where it has no meaning there.
    pub fn function(self, dtype: DType) -> Option<TernaryFn> {
        match self {
            Ternary::Select => Some(match dtype.size() {
                8 => bytes3::<Bool, u64, map::Select>,
                4 => bytes3::<Bool, u32, map::Select>,
                2 => bytes3::<Bool, u16, map::Select>,
                _ => bytes3::<Bool, u8, map::Select>,
            }),
            Ternary::MulAdd => mul_add(dtype),
        }
    }
}

fn mul_add(dtype: DType) -> Option<TernaryFn> {
    type M = map::MulAdd;
    match dtype {
        DType::F64 => Some(bytes3::<f64, f64, M>),
        DType::F32 => Some(bytes3::<f32, f32, M>),
        // The low bits of a product and a sum are the same for both signs.
        DType::I64 | DType::U64 => Some(bytes3::<u64, u64, M>),
        DType::I32 | DType::U32 => Some(bytes3::<u32, u32, M>),
        DType::I16 | DType::U16 => Some(bytes3::<u16, u16, M>),
        DType::I8 | DType::U8 => Some(bytes3::<u8, u8, M>),
        DType::F16 | DType::BF16 | DType::Bool => None,
    }
}
