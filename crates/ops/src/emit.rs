//! Short words for the ops that gradient rules and composites are written in.

use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::Cotangent;
use tonnage_core::{DType, Dim, OpDef, Scalar, Shape, Sizes, TensorType};

use crate::{linalg, math, reduce, shape};

/// Applies an op without attributes to two values.
pub fn binary(e: &mut dyn Emit, op: &'static OpDef, a: Value, b: Value) -> Result<Value> {
    e.apply(op, vec![a, b], Attrs::None)
}

/// Applies an op without attributes to one value.
pub fn unary(e: &mut dyn Emit, op: &'static OpDef, a: Value) -> Result<Value> {
    e.apply(op, vec![a], Attrs::None)
}

/// `a + b`
pub fn add(e: &mut dyn Emit, a: Value, b: Value) -> Result<Value> {
    binary(e, &math::add::ADD, a, b)
}

/// `a - b`
pub fn sub(e: &mut dyn Emit, a: Value, b: Value) -> Result<Value> {
    binary(e, &math::sub::SUB, a, b)
}

/// `a * b`
pub fn mul(e: &mut dyn Emit, a: Value, b: Value) -> Result<Value> {
    binary(e, &math::mul::MUL, a, b)
}

/// `a / b`
pub fn div(e: &mut dyn Emit, a: Value, b: Value) -> Result<Value> {
    binary(e, &math::div::DIV, a, b)
}

/// `-a`
pub fn neg(e: &mut dyn Emit, a: Value) -> Result<Value> {
    unary(e, &math::neg::NEG, a)
}

/// A number as a scalar tensor of that dtype; a recipe, so it costs nothing.
pub fn number(e: &mut dyn Emit, value: impl Into<Scalar>, dtype: DType) -> Result<Value> {
    let attrs = Attrs::Fill { value: value.into(), dtype, shape: Shape::scalar() };
    e.apply(&shape::fill::FILL, Vec::new(), attrs)
}

/// A length as a scalar tensor of that dtype: a recipe where it is known, and in a plan where it was open; where the
/// data decide it, what it turns out to be.
pub fn size(e: &mut dyn Emit, length: &Dim, dtype: DType) -> Result<Value> {
    if let Some(n) = length.known() {
        return number(e, n, dtype);
    }
    let attrs = Attrs::Lengths { of: [length.clone()].into_iter().collect(), dtype };
    let one = e.apply(&shape::lengths::LENGTHS, Vec::new(), attrs)?;
    reshape(e, one, &Shape::scalar())
}

/// Zeros of that type; a recipe.
pub fn zeros(e: &mut dyn Emit, ty: &TensorType) -> Result<Value> {
    let attrs = Attrs::Fill { value: Scalar::Int(0), dtype: ty.dtype, shape: ty.shape.clone() };
    e.apply(&shape::fill::FILL, Vec::new(), attrs)
}

/// `a * value`
pub fn scale(e: &mut dyn Emit, a: Value, value: impl Into<Scalar>) -> Result<Value> {
    let value = number(e, value, a.ty().dtype)?;
    mul(e, a, value)
}

/// In another dtype, if it is not already.
pub fn cast(e: &mut dyn Emit, a: Value, dtype: DType) -> Result<Value> {
    match a.ty().dtype == dtype {
        true => Ok(a),
        false => e.apply(&math::cast::CAST, vec![a], Attrs::DType(dtype)),
    }
}

/// Summed over axes.
pub fn sum(e: &mut dyn Emit, a: Value, axes: Sizes, keep_dims: bool) -> Result<Value> {
    e.apply(&reduce::sum::SUM, vec![a], Attrs::Reduce { axes, keep_dims })
}

/// Under another shape, if it has not got it already.
pub fn reshape(e: &mut dyn Emit, a: Value, to: &Shape) -> Result<Value> {
    match a.ty().shape == *to {
        true => Ok(a),
        false => e.apply(&shape::reshape::RESHAPE, vec![a], Attrs::Shape(to.clone())),
    }
}

/// With its axes in another order, if that is another one.
pub fn transpose(e: &mut dyn Emit, a: Value, order: &[usize]) -> Result<Value> {
    match order.is_sorted() {
        true => Ok(a),
        false => e.apply(&shape::transpose::TRANSPOSE, vec![a], Attrs::Order(order.into())),
    }
}

/// Broadcast to a shape, if it has not got it already.
pub fn broadcast_to(e: &mut dyn Emit, a: Value, to: &Shape) -> Result<Value> {
    match a.ty().shape == *to {
        true => Ok(a),
        false => e.apply(&shape::broadcast_to::BROADCAST_TO, vec![a], Attrs::Shape(to.clone())),
    }
}

/// Moved one place along an axis, towards its end or its front, with a zero coming in.
pub fn shift(e: &mut dyn Emit, a: Value, axis: usize, to_end: bool) -> Result<Value> {
    let shape = a.ty().shape.clone();
    if shape[axis].is(0) {
        return Ok(a);
    }
    let less = shape[axis].minus(&Dim::Known(1));
    let part = |start: usize| {
        let mut slices: Vec<AxisSlice> = shape.iter().cloned().map(AxisSlice::all).collect();
        slices[axis] = AxisSlice { start: start.into(), len: less.clone(), step: 1 };
        slices
    };
    let (from, to) = if to_end { (0, 1) } else { (1, 0) };
    let kept = e.apply(&shape::slice::SLICE, vec![a], Attrs::Slices(part(from)))?;
    let place = Attrs::Place { slices: part(to), shape: shape.clone() };
    e.apply(&shape::place::PLACE, vec![kept], place)
}

/// The product of matrices, either one transposed.
pub fn matmul(
    e: &mut dyn Emit,
    a: Value,
    b: Value,
    transpose_a: bool,
    transpose_b: bool,
) -> Result<Value> {
    let attrs = Attrs::Matmul { transpose_a, transpose_b };
    e.apply(&linalg::matmul::MATMUL, vec![a, b], attrs)
}

/// The gradient of an input that was broadcast and promoted: summed and cast back to its type.
pub fn sum_to(e: &mut dyn Emit, grad: Value, ty: &TensorType) -> Result<Value> {
    let mut grad = grad;
    if grad.ty().shape != ty.shape {
        let new = grad.ty().shape.rank() - ty.shape.rank();
        let broadcast: Sizes = (0..grad.ty().shape.rank())
            .filter(|i| *i < new || ty.shape[*i - new] != grad.ty().shape[*i])
            .collect();
        grad = sum(e, grad, broadcast, true)?;
        grad = reshape(e, grad, &ty.shape)?;
    }
    cast(e, grad, ty.dtype)
}

/// A rule's answer for one input.
pub fn dense(value: Value) -> Option<Cotangent> {
    Some(Cotangent::Dense(value))
}
