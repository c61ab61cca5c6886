//! Algebraic identities that keep the bits, for every input: NaN, infinities and both zeros included.
//!
//! Why the bits stay, where it is not plain (tests run each against the eager op on special values):
//!
//! * `x * 1`, `x / 1`, `x - 0`, `x + -0`: IEEE gives x itself, zeros with their sign and NaN with its payload.
//!   `x + 0` is not among them (-0 becomes 0), nor `x - -0`. A *signalling* NaN would be made quiet by
//!   the arithmetic and stays as it is here; no op of ours makes one.
//! * `x * 2` is `x + x`: both are exact up to the same overflow. `x * x` is `square`: the same product.
//! * `x / c` is `x * (1 / c)` where c is a power of two and 1 / c no subnormal: both are the same real number,
//!   rounded once.
//! * `max(x, x)`: a value that is not larger and not NaN is its second operand, which is x.
//!   `max(max(x, c), c)`: the inner one is c or above it.
//! * `-(-x)`, `!!x`, `|-x|`: signs are bits. `floor` and its like leave what is integral as it is.
//! * `x < x` is false of NaN too; `x == x` is not true of NaN, so that one is for integers.
//! * A cast to a dtype that holds every value, followed by another cast, is the second cast of the same value.
//! * Integers wrap, so they are a ring: sums and products of constants join, `x - c` is `x + -c`,
//!   `x + -y` is `x - y`, `x - x` is 0. Of floats none of that holds.
//! * `where` of a known condition, or of twice the same.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::ValueId;
use tonnage_core::shape::TensorType;
use tonnage_core::tile::Prim;
use tonnage_core::{Class, DType, Scalar};
use tonnage_ops::math::add::ADD;
use tonnage_ops::math::cast::CAST;
use tonnage_ops::math::mul::MUL;
use tonnage_ops::math::neg::NEG;
use tonnage_ops::math::square::SQUARE;
use tonnage_ops::math::sub::SUB;
use tonnage_ops::tile::element;

use super::prim::only;
use super::rewriter::{PendingNode, Rewriter};

pub(super) fn rule(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    // A size that the data decide is known to what computes it alone: nothing else could be made of it.
    if given.ty.shape.sizes().is_none() {
        return Ok(None);
    }
    if given.op == &CAST {
        return cast(rewriter, given);
    }
    let Some((prim, dtype)) = only(given) else { return Ok(None) };
    match given.inputs {
        [x] => Ok(unary(rewriter, prim, *x)),
        [a, b] if dtype.is_float() => float(rewriter, given, prim, dtype, *a, *b),
        [a, b] => integer(rewriter, given, prim, dtype, *a, *b),
        [choice, a, b] if prim == Prim::Select => Ok(select(rewriter, given.ty, *choice, *a, *b)),
        _ => Ok(None),
    }
}

/// The node that makes a value, as its only primitive and its first two inputs.
fn inner(rewriter: &Rewriter, id: ValueId) -> Option<(Prim, ValueId, Option<ValueId>)> {
    let node = rewriter.maker(id)?;
    let tonnage_core::row::Lower::Tile(make) = node.op.lower else { return None };
    let program = rewriter.graph.with_call(node, |call| make(call, node.aux)).ok()?;
    let ty = rewriter.ty(id);
    let given = PendingNode {
        op: node.op,
        attrs: &node.attrs,
        inputs: &node.inputs,
        ty,
        program: Some(&program),
    };
    let (prim, _) = only(&given)?;
    Some((prim, *node.inputs.first()?, node.inputs.get(1).copied()))
}

fn unary(rewriter: &Rewriter, prim: Prim, x: ValueId) -> Option<ValueId> {
    use Prim::*;
    let below = || inner(rewriter, x);
    match prim {
        Neg | Not => below().filter(|(p, ..)| *p == prim).map(|(_, y, _)| y),
        Abs | Floor | Ceil | Round | Sign => below().filter(|(p, ..)| *p == prim).map(|_| x),
        _ => None,
    }
}

fn float(
    rewriter: &mut Rewriter,
    given: &PendingNode,
    prim: Prim,
    dtype: DType,
    a: ValueId,
    b: ValueId,
) -> Result<Option<ValueId>> {
    let whole = |rewriter: &Rewriter, id: ValueId| rewriter.ty(id) == given.ty;
    let is = |c: Option<Scalar>, x: f64| c == Some(Scalar::Float(x));
    let (left, right) = (rewriter.constant(a), rewriter.constant(b));
    let kept = match prim {
        Prim::Add if is(right, -0.0) => Some(a),
        Prim::Add if is(left, -0.0) => Some(b),
        Prim::Sub if is(right, 0.0) => Some(a),
        Prim::Mul | Prim::Div if is(right, 1.0) => Some(a),
        Prim::Mul if is(left, 1.0) => Some(b),
        Prim::Max | Prim::Min if a == b || is_again(rewriter, prim, a, b) => Some(a),
        _ => None,
    };
    if let Some(kept) = kept.filter(|id| whole(rewriter, *id)) {
        return Ok(Some(kept));
    }
    match prim {
        Prim::Lt | Prim::Gt if a == b => rewriter.fill(Scalar::Bool(false), given.ty).map(Some),
        Prim::Mul if a == b => {
            rewriter.apply(&SQUARE, &[a], Attrs::None, given.ty.clone()).map(Some)
        }
        Prim::Mul if is(right, 2.0) && whole(rewriter, a) => twice(rewriter, given, a),
        Prim::Mul if is(left, 2.0) && whole(rewriter, b) => twice(rewriter, given, b),
        Prim::Div => match right.and_then(|c| inverse(c, dtype)) {
            Some(inverse) => {
                let ty = rewriter.ty(b).clone();
                let by = rewriter.fill(inverse, &ty)?;
                rewriter.apply(&MUL, &[a, by], Attrs::None, given.ty.clone()).map(Some)
            }
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn twice(rewriter: &mut Rewriter, given: &PendingNode, x: ValueId) -> Result<Option<ValueId>> {
    rewriter.apply(&ADD, &[x, x], Attrs::None, given.ty.clone()).map(Some)
}

/// `max(max(x, c), c)`, whichever side c stands on in the inner one.
fn is_again(rewriter: &Rewriter, prim: Prim, a: ValueId, b: ValueId) -> bool {
    inner(rewriter, a).is_some_and(|(p, _, second)| p == prim && second == Some(b))
}

/// 1 / c, where c is a power of two and 1 / c is a normal number of the dtype.
fn inverse(c: Scalar, dtype: DType) -> Option<Scalar> {
    let Scalar::Float(c) = c else { return None };
    let most = match dtype {
        DType::F64 => 1022,
        DType::F32 | DType::BF16 => 126,
        _ => 14,
    };
    let bits = c.to_bits();
    let (exponent, mantissa) = ((bits >> 52 & 0x7ff) as i64 - 1023, bits & ((1 << 52) - 1));
    let exact = mantissa == 0 && exponent.abs() <= most;
    exact.then(|| element(Scalar::Float(1.0 / c), dtype))
}

fn integer(
    rewriter: &mut Rewriter,
    given: &PendingNode,
    prim: Prim,
    dtype: DType,
    a: ValueId,
    b: ValueId,
) -> Result<Option<ValueId>> {
    use Prim::*;
    let (zero, one) = (element(Scalar::Int(0), dtype), element(Scalar::Int(1), dtype));
    let ones = match dtype.class() {
        Class::Bool => Scalar::Bool(true),
        _ => element(Scalar::Int(-1), dtype),
    };
    let (left, right) = (rewriter.constant(a), rewriter.constant(b));
    let whole = |rewriter: &Rewriter, id: ValueId| rewriter.ty(id) == given.ty;
    let has = |c: Scalar| if right == Some(c) { Some(a) } else { (left == Some(c)).then_some(b) };
    let kept = match prim {
        Add | Or | Xor => has(zero),
        Mul => has(one),
        And => has(ones),
        Sub | Shl | Shr if right == Some(zero) => Some(a),
        Div | FloorDiv if right == Some(one) => Some(a),
        Max | Min if a == b || is_again(rewriter, prim, a, b) => Some(a),
        _ => None,
    };
    let kept = match prim {
        And | Or if a == b => Some(a),
        _ => kept,
    };
    if let Some(kept) = kept.filter(|id| whole(rewriter, *id)) {
        return Ok(Some(kept));
    }
    let value = match prim {
        Mul | And if has(zero).is_some() => Some(zero),
        Or if has(ones).is_some() => Some(ones),
        Sub | Xor if a == b => Some(zero),
        Mod if right == Some(one) => Some(zero),
        Eq | Le | Ge if a == b => Some(Scalar::Bool(true)),
        Ne | Lt | Gt if a == b => Some(Scalar::Bool(false)),
        _ => None,
    };
    if let Some(value) = value {
        return rewriter.fill(value, given.ty).map(Some);
    }
    if dtype == DType::Bool {
        return Ok(None);
    }
    ring(rewriter, given, prim, dtype, a, b)
}

/// What holds of integers because they wrap.
fn ring(
    rewriter: &mut Rewriter,
    given: &PendingNode,
    prim: Prim,
    dtype: DType,
    a: ValueId,
    b: ValueId,
) -> Result<Option<ValueId>> {
    let number = |c: Option<Scalar>| c.map(Scalar::to_i128);
    let (left, right) = (number(rewriter.constant(a)), number(rewriter.constant(b)));
    let ty = given.ty.clone();
    // The low bits of the sum or the product of two numbers are what wrapping gives.
    let scalar = |n: i128| element(Scalar::Int(n), dtype);
    match (prim, left, right) {
        (Prim::Mul, None, None) if a == b => {
            rewriter.apply(&SQUARE, &[a], Attrs::None, ty).map(Some)
        }
        (Prim::Sub, None, Some(c)) => {
            let c_ty = rewriter.ty(b).clone();
            let c = rewriter.fill(scalar(c.wrapping_neg()), &c_ty)?;
            rewriter.apply(&ADD, &[a, c], Attrs::None, ty).map(Some)
        }
        (Prim::Add | Prim::Mul, None, Some(c)) => {
            let Some((p, x, Some(y))) = inner(rewriter, a) else { return Ok(None) };
            let Some(d) = number(rewriter.constant(y)).filter(|_| p == prim) else {
                return Ok(None);
            };
            if *rewriter.ty(x) != ty {
                return Ok(None);
            }
            let joined = if prim == Prim::Add { c.wrapping_add(d) } else { c.wrapping_mul(d) };
            let c_ty = TensorType { dtype, shape: tonnage_core::Shape::scalar() };
            let c = rewriter.fill(scalar(joined), &c_ty)?;
            let op = if prim == Prim::Add { &ADD } else { &MUL };
            rewriter.apply(op, &[x, c], Attrs::None, ty).map(Some)
        }
        (Prim::Add | Prim::Sub, None, None) => match rewriter.made_by(b, &NEG) {
            Some(neg) => {
                let y = neg.inputs[0];
                let op = if prim == Prim::Add { &SUB } else { &ADD };
                rewriter.apply(op, &[a, y], Attrs::None, ty).map(Some)
            }
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn select(
    rewriter: &Rewriter,
    ty: &TensorType,
    choice: ValueId,
    a: ValueId,
    b: ValueId,
) -> Option<ValueId> {
    let chosen = match rewriter.constant(choice) {
        Some(Scalar::Bool(true)) => Some(a),
        Some(Scalar::Bool(false)) => Some(b),
        _ => (a == b).then_some(a),
    };
    chosen.filter(|id| rewriter.ty(*id) == ty)
}

fn cast(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    let x = given.inputs[0];
    if rewriter.ty(x) == given.ty {
        return Ok(Some(x));
    }
    let Some(inner) = rewriter.made_by(x, &CAST) else { return Ok(None) };
    let from = inner.inputs[0];
    // Every value comes through the first cast unharmed.
    if !rewriter.dtype(from).promotes_to(rewriter.dtype(x)) {
        return Ok(None);
    }
    rewriter.apply(&CAST, &[from], given.attrs.clone(), given.ty.clone()).map(Some)
}
