//! Elementwise arithmetic, comparisons, logic and casts.

use tonnage::{DType, Elementwise, Result, Tensor};

use super::Rule;
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Abs" => |c| match c.x(0)?.dtype().class() {
            tonnage_core::Class::Unsigned => one(c.x(0)?),
            _ => one(c.x(0)?.abs()?),
        },
        "Neg" => |c| one(c.x(0)?.neg()?),
        "Sign" => |c| one(sign(&c.x(0)?)?),
        "Floor" => |c| one(c.x(0)?.floor()?),
        "Ceil" => |c| one(c.x(0)?.ceil()?),
        "Round" => |c| one(c.x(0)?.round()?),
        "Sqrt" => |c| one(c.x(0)?.sqrt()?),
        "Reciprocal" => |c| one(c.x(0)?.reciprocal()?),
        "Exp" => |c| one(c.x(0)?.exp()?),
        "Log" => |c| one(c.x(0)?.log()?),
        "Sin" => |c| one(c.x(0)?.sin()?),
        "Cos" => |c| one(c.x(0)?.cos()?),
        "Tan" => |c| one(c.x(0)?.tan()?),
        "Asin" => |c| one(c.x(0)?.asin()?),
        "Acos" => |c| one(c.x(0)?.acos()?),
        "Atan" => |c| one(c.x(0)?.atan()?),
        "Sinh" => |c| one(c.x(0)?.sinh()?),
        "Cosh" => |c| one(c.x(0)?.cosh()?),
        "Tanh" => |c| one(c.x(0)?.tanh()?),
        "Asinh" => |c| one(c.x(0)?.asinh()?),
        "Acosh" => |c| one(c.x(0)?.acosh()?),
        "Atanh" => |c| one(c.x(0)?.atanh()?),
        "Erf" => |c| one(c.x(0)?.erf()?),
        "Not" => |c| one(c.x(0)?.logical_not()?),
        "BitwiseNot" => |c| one(c.x(0)?.bitwise_not()?),
        "IsNaN" => |c| one(c.x(0)?.is_nan()?),
        "IsInf" => is_inf,
        "Add" => |c| binary(c, |a, b| a.add(b)),
        "Sub" => |c| binary(c, |a, b| a.sub(b)),
        "Mul" => |c| binary(c, |a, b| a.mul(b)),
        "Div" => |c| binary(c, quotient),
        "And" => |c| binary(c, |a, b| a.logical_and(b)),
        "Or" => |c| binary(c, |a, b| a.logical_or(b)),
        "Xor" => |c| binary(c, |a, b| a.logical_xor(b)),
        "Equal" => |c| binary(c, |a, b| a.equal(b)),
        "Greater" => |c| binary(c, |a, b| a.greater(b)),
        "Less" => |c| binary(c, |a, b| a.less(b)),
        "GreaterOrEqual" => |c| binary(c, |a, b| a.greater_equal(b)),
        "LessOrEqual" => |c| binary(c, |a, b| a.less_equal(b)),
        "BitwiseAnd" => |c| binary(c, |a, b| a.bitwise_and(b)),
        "BitwiseOr" => |c| binary(c, |a, b| a.bitwise_or(b)),
        "BitwiseXor" => |c| binary(c, |a, b| a.bitwise_xor(b)),
        "BitShift" => |c| match c.text("direction", "")?.as_str() {
            "LEFT" => binary(c, |a, b| a.shift_left(b)),
            "RIGHT" => binary(c, |a, b| a.shift_right(b)),
            other => Err(c.refuse(format!("the direction `{other}`"))),
        },
        "Pow" => |c| binary(c, power),
        "Mod" => |c| match c.flag("fmod")? {
            true => binary(c, truncated_remainder),
            false => binary(c, |a, b| a.modulo(b)),
        },
        "Max" => |c| several(c, |a, b| a.maximum(b)),
        "Min" => |c| several(c, |a, b| a.minimum(b)),
        "Sum" => |c| several(c, |a, b| a.add(b)),
        "Mean" => |c| {
            let count = c.inputs.len() as f64;
            let sum = several(c, |a, b| a.add(b))?.remove(0).tensor()?;
            one(sum.div(count)?)
        },
        "Where" => |c| one(c.x(0)?.where_(&c.x(1)?, &c.x(2)?)?),
        "Identity" => |c| Ok(vec![c.inputs.first().cloned().unwrap_or(Value::Absent)]),
        "Cast" => |c| {
            let to = c.dtype(c.int("to", 0)?)?;
            one(cast(&c.x(0)?, to)?)
        },
        "CastLike" => |c| one(cast(&c.x(0)?, c.x(1)?.dtype())?),
        "BitCast" => |c| {
            let to = c.dtype(c.int("to", 0)?)?;
            one(bits(&c.x(0)?, to)?)
        },
        _ => return None,
    })
}

/// The same bytes as another dtype; a boolean is a byte that is 0 or 1.
fn bits(x: &Tensor, to: DType) -> Result<Tensor> {
    match (x.dtype(), to) {
        (DType::Bool, DType::U8 | DType::I8) => x.cast(to),
        (DType::U8 | DType::I8, DType::Bool) => x.not_equal(0),
        _ => x.bitcast(to),
    }
}

fn sign(x: &Tensor) -> Result<Tensor> {
    match x.dtype().class() {
        tonnage_core::Class::Unsigned => x.minimum(1),
        _ => x.sign(),
    }
}

/// A cast as ONNX has it: what is not 0 is true, and NaN is, too.
pub fn cast(x: &Tensor, to: DType) -> Result<Tensor> {
    match to {
        DType::Bool if x.dtype() != DType::Bool => x.not_equal(0),
        _ => x.cast(to),
    }
}

/// Both sides; before opset 7 the second was laid along an axis of the first.
fn binary(c: &Call, run: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Vec<Value>> {
    let (a, mut b) = (c.x(0)?, c.x(1)?);
    if c.version < 7
        && let Some(axis) = c.maybe_int("axis")?
    {
        let mut shape = c.sizes(&b)?;
        let behind = a.rank().saturating_sub(c.axis(axis, a.rank())? + shape.len());
        shape.extend(std::iter::repeat_n(1, behind));
        b = b.reshape(shape)?;
    }
    one(run(&a, &b)?)
}

fn several(c: &Call, run: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Vec<Value>> {
    let mut made = c.x(0)?;
    for at in 1..c.inputs.len() {
        made = run(&made, &c.x(at)?)?;
    }
    one(made)
}

/// Whole numbers are divided towards 0.
pub fn quotient(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match a.dtype().class() {
        tonnage_core::Class::Unsigned => a.floor_div(b),
        tonnage_core::Class::Signed => {
            let below = a.floor_div(b)?;
            let rest = a.sub(&below.mul(b)?)?;
            let differ = a.less(0)?.logical_xor(&b.less(0)?)?;
            let up = rest.not_equal(0)?.logical_and(&differ)?;
            below.add(&up.cast(a.dtype())?)
        }
        _ => a.div(b),
    }
}

fn truncated_remainder(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match a.dtype().class() {
        tonnage_core::Class::Unsigned => a.modulo(b),
        _ => a.abs()?.modulo(&b.abs()?)?.mul(&a.sign()?),
    }
}

/// The result is of the base's dtype.
fn power(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (base, exponent) = (a.dtype(), b.dtype());
    match () {
        () if base == exponent => a.pow(b),
        () if base.is_float() && base.size() >= exponent.size().min(4) => a.pow(&b.cast(base)?),
        () if !base.is_float() && !exponent.is_float() => a.pow(&b.cast(base)?),
        () => a.cast(DType::F64)?.pow(&b.cast(DType::F64)?)?.cast(base),
    }
}

fn is_inf(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let infinite = (&x).is_inf()?;
    one(match (c.int("detect_negative", 1)? != 0, c.int("detect_positive", 1)? != 0) {
        (true, true) => infinite,
        (true, false) => infinite.logical_and(&x.less(0)?)?,
        (false, true) => infinite.logical_and(&x.greater(0)?)?,
        (false, false) => infinite.logical_and(&x.is_nan()?)?,
    })
}
