//! From a primitive to the vectorized function that runs it over a tile.

use tonnage_core::DType;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::tile::{Instr, Prim};

use tonnage_simd::cast::cast;
use tonnage_simd::prim::{Binary, BinaryFn, Ternary, TernaryFn, Unary, UnaryFn};

/// What an instruction calls.
#[derive(Clone, Copy)]
pub enum PrimitiveFn {
    One(UnaryFn),
    Two(BinaryFn),
    Three(TernaryFn),
    /// To a 16-bit float, and that to what holds it.
    Round(UnaryFn, UnaryFn),
}

pub fn resolve(instr: &Instr) -> Result<PrimitiveFn> {
    let dtype = instr.dtype;
    let found = match instr.prim {
        Prim::Const(_) => None, // a scalar: nothing to call
        // A register holds a 16-bit float as the f32 that it is.
        Prim::Cast(to) if to.compute() != to => {
            Some(PrimitiveFn::Round(cast(dtype, to), cast(to, to.compute())))
        }
        Prim::Cast(to) => Some(PrimitiveFn::One(cast(dtype, to))),
        Prim::RoundTo(to) => Some(PrimitiveFn::Round(cast(dtype, to), cast(to, dtype))),
        Prim::Select => Ternary::Select.function(dtype).map(PrimitiveFn::Three),
        Prim::Fma => Ternary::MulAdd.function(dtype).map(PrimitiveFn::Three),
        prim => match (unary(prim), binary(prim)) {
            (Some(one), _) => one.function(dtype).map(PrimitiveFn::One),
            (_, Some(two)) => two.function(dtype).map(PrimitiveFn::Two),
            _ => None,
        },
    };
    found.ok_or_else(|| unsupported(instr.prim, dtype))
}

fn unsupported(prim: Prim, dtype: DType) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("the primitive {prim:?} has no meaning for {dtype}") }
        .into()
}

fn unary(prim: Prim) -> Option<Unary> {
    Some(match prim {
        Prim::Neg => Unary::Neg,
        Prim::Abs => Unary::Abs,
        Prim::Sign => Unary::Sign,
        Prim::Floor => Unary::Floor,
        Prim::Ceil => Unary::Ceil,
        Prim::Round => Unary::Round,
        Prim::Sqrt => Unary::Sqrt,
        Prim::Rsqrt => Unary::Rsqrt,
        Prim::Square => Unary::Square,
        Prim::Reciprocal => Unary::Reciprocal,
        Prim::Exp => Unary::Exp,
        Prim::Expm1 => Unary::Expm1,
        Prim::Log => Unary::Log,
        Prim::Log1p => Unary::Log1p,
        Prim::Sin => Unary::Sin,
        Prim::Cos => Unary::Cos,
        Prim::Tan => Unary::Tan,
        Prim::Asin => Unary::Asin,
        Prim::Acos => Unary::Acos,
        Prim::Atan => Unary::Atan,
        Prim::Sinh => Unary::Sinh,
        Prim::Cosh => Unary::Cosh,
        Prim::Tanh => Unary::Tanh,
        Prim::Asinh => Unary::Asinh,
        Prim::Acosh => Unary::Acosh,
        Prim::Atanh => Unary::Atanh,
        Prim::Sigmoid => Unary::Sigmoid,
        Prim::Softplus => Unary::Softplus,
        Prim::Silu => Unary::Silu,
        Prim::Gelu => Unary::Gelu,
        Prim::GeluTanh => Unary::GeluTanh,
        Prim::Lgamma => Unary::Lgamma,
        Prim::Digamma => Unary::Digamma,
        Prim::IsNan => Unary::IsNan,
        Prim::IsInf => Unary::IsInf,
        Prim::IsFinite => Unary::IsFinite,
        Prim::Erf => Unary::Erf,
        Prim::Erfc => Unary::Erfc,
        Prim::Not => Unary::Not,
        _ => return None,
    })
}

fn binary(prim: Prim) -> Option<Binary> {
    Some(match prim {
        Prim::Add => Binary::Add,
        Prim::Sub => Binary::Sub,
        Prim::Mul => Binary::Mul,
        Prim::Div => Binary::Div,
        Prim::FloorDiv => Binary::FloorDiv,
        Prim::Mod => Binary::Mod,
        Prim::Pow => Binary::Pow,
        Prim::Max => Binary::Max,
        Prim::Min => Binary::Min,
        Prim::Atan2 => Binary::Atan2,
        Prim::Hypot => Binary::Hypot,
        Prim::Polygamma => Binary::Polygamma,
        Prim::And => Binary::And,
        Prim::Or => Binary::Or,
        Prim::Xor => Binary::Xor,
        Prim::Shl => Binary::Shl,
        Prim::Shr => Binary::Shr,
        Prim::Eq => Binary::Equal,
        Prim::Ne => Binary::NotEqual,
        Prim::Lt => Binary::Less,
        Prim::Le => Binary::LessEqual,
        Prim::Gt => Binary::Greater,
        Prim::Ge => Binary::GreaterEqual,
        _ => return None,
    })
}
