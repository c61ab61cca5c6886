//! Elementwise ops: tile programs of one or a few primitives.

pub mod abs;
pub mod acos;
pub mod acosh;
pub mod add;
pub mod asin;
pub mod asinh;
pub mod atan;
pub mod atan2;
pub mod atanh;
pub mod bitwise;
pub mod cast;
pub mod classification;
pub mod clip;
pub mod comparison;
pub mod cos;
pub mod cosh;
pub mod digamma;
pub mod div;
pub mod divide_no_nan;
pub mod elu;
pub mod erf;
pub mod erfc;
pub mod exp;
pub mod expm1;
pub mod extremum;
pub mod floor_div;
pub mod fma;
pub mod gelu;
pub mod gelu_tanh;
pub mod hard_sigmoid;
pub mod hard_swish;
pub mod hypot;
pub mod identity;
pub mod leaky_relu;
pub mod lgamma;
pub mod log;
pub mod log1p;
pub mod logical;
pub mod mod_;
pub mod mul;
pub mod neg;
pub mod polygamma;
pub mod pow;
pub mod reciprocal;
pub mod relu;
pub mod relu6;
pub mod relu_grad;
pub mod rounding;
pub mod rsqrt;
pub mod selu;
pub mod sigmoid;
pub mod sign;
pub mod silu;
pub mod sin;
pub mod sinh;
pub mod softplus;
pub mod softsign;
pub mod sqrt;
pub mod square;
pub mod squared_difference;
pub mod stop_gradient;
pub mod sub;
pub mod tan;
pub mod tanh;
pub mod where_;
pub mod xlogy;

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, JvpCall};
use tonnage_core::row::{Call, Cost, Types};
use tonnage_core::tile::{Prim, Reg, TileProgram};
use tonnage_core::{DType, TensorType};

use crate::rules;
use crate::tile::Chain;

/// One input through one primitive, in its own dtype.
fn one(call: &Call, prim: Prim) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(TileProgram::single(prim, &[dtype], dtype, dtype))
}

/// One input through several primitives.
fn several(call: &Call, build: impl FnOnce(&mut Chain, Reg) -> Reg) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(Chain::program([dtype], dtype, |p, [x]| (build(p, x), None)))
}

/// The same; `build` gives a boolean besides, which leaves as bits where they are asked for.
fn several_with_bits(
    call: &Call,
    bits: bool,
    build: impl FnOnce(&mut Chain, Reg) -> (Reg, Reg),
) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(Chain::program([dtype], dtype, |p, [x]| {
        let (made, truth) = build(p, x);
        (made, bits.then_some(truth))
    }))
}

/// The dtype that the two inputs promote to.
fn promoted(call: &Call) -> Result<DType> {
    rules::infer::promoted(call, call.inputs[0].dtype, call.inputs[1].dtype)
}

/// Two inputs, promoted, through one primitive.
fn two(call: &Call, prim: Prim) -> Result<TileProgram> {
    let dtype = promoted(call)?;
    Ok(TileProgram::single(prim, &[call.inputs[0].dtype, call.inputs[1].dtype], dtype, dtype))
}

/// Two inputs, promoted, through several primitives.
fn pairwise(call: &Call, build: impl FnOnce(&mut Chain, Reg, Reg) -> Reg) -> Result<TileProgram> {
    pairwise_with_bits(call, false, build, |_, a, _| a)
}

/// The same; `build` gives a boolean besides, which leaves as bits where they are asked for.
fn pairwise_with_bits(
    call: &Call,
    bits: bool,
    build: impl FnOnce(&mut Chain, Reg, Reg) -> Reg,
    truth: impl FnOnce(&mut Chain, Reg, Reg) -> Reg,
) -> Result<TileProgram> {
    let dtype = promoted(call)?;
    let loads = [call.inputs[0].dtype, call.inputs[1].dtype];
    Ok(Chain::program(loads, dtype, |p, loads| {
        let [a, b] = loads.map(|reg| p.cast(reg, dtype));
        let made = build(p, a, b);
        (made, bits.then(|| truth(p, a, b)))
    }))
}

/// Two inputs, promoted, through one primitive that gives a boolean.
fn compared(call: &Call, prim: Prim) -> Result<TileProgram> {
    let loads = [call.inputs[0].dtype, call.inputs[1].dtype];
    Ok(TileProgram::single(prim, &loads, promoted(call)?, DType::Bool))
}

/// One input through one primitive that gives a boolean.
fn classified(call: &Call, prim: Prim) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(TileProgram::single(prim, &[dtype], dtype, DType::Bool))
}

/// One float in, a boolean out.
fn classify(call: &Call) -> Result<Types> {
    let made = rules::infer::unary_float(call)?;
    Ok(smallvec![TensorType { dtype: DType::Bool, ..made[0].clone() }])
}

/// One boolean in, one out.
fn unary_bool(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::boolean(call, &call.inputs[0])?;
    Ok(smallvec![call.inputs[0].clone()])
}

/// One integer in, one out.
fn unary_integer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::integer(call, &call.inputs[0])?;
    Ok(smallvec![call.inputs[0].clone()])
}

/// Two booleans in, one out, broadcast.
fn binary_bool(call: &Call) -> Result<Types> {
    rules::infer::count(call, 2)?;
    let (a, b) = (&call.inputs[0], &call.inputs[1]);
    rules::infer::boolean(call, a)?;
    rules::infer::boolean(call, b)?;
    Ok(smallvec![TensorType::new(DType::Bool, a.shape.broadcast(&b.shape, call.op)?)])
}

/// Two integers in, promoted and broadcast.
fn binary_integer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 2)?;
    rules::infer::integer(call, &call.inputs[0])?;
    rules::infer::integer(call, &call.inputs[1])?;
    rules::infer::binary_number(call)
}

/// A number of flops an element of the only input, which the output is like.
fn cost_one(call: &Call, flops: u64) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], flops)
}

/// A number of flops an element of what a type rule gives.
fn cost(call: &Call, infer: fn(&Call) -> Result<Types>, flops: u64) -> Cost {
    rules::cost::elementwise(call, &infer(call).unwrap_or_default(), flops)
}

/// The gradient of a function that is flat wherever it has a slope at all: zero. A rule, not a `Stop`: asking
/// for it is no mistake.
fn flat(_: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![None; call.inputs.len()])
}

fn flat_jvp(_: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    Ok(vec![None; call.outputs.len()])
}
