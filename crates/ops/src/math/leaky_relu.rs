//! `leaky_relu`: every element, times a number where it is negative.
//!
//! The slope at 0 is that number. The gradient needs to know the sign alone: a bit an element, or the input
//! where that is saved anyway.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::tile::{Prim, Reg, TileProgram};
use tonnage_core::{OpDef, Scalar};

use super::relu_grad::bits_type;
use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// Every element, times a number where it is negative.
pub static LEAKY_RELU: OpDef = OpDef {
    id: OpId::LeakyRelu as u16,
    name: "leaky_relu",
    doc: "Every element, times a number where it is negative.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves { alternatives: &[&[Save::Input(0).always()], &[Save::Aux(0).always()]], aux },
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 3),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(program),
    samples,
};

/// The only number among the attributes.
pub(super) fn number(call: &Call) -> Result<Scalar> {
    match call.attrs {
        Attrs::Number(number) => Ok(*number),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    number(call)?;
    rules::infer::unary_float(call)
}

fn aux(call: &Call) -> Result<Types> {
    Ok(smallvec![bits_type(&call.inputs[0])])
}

fn program(call: &Call, bits: bool) -> Result<TileProgram> {
    let number = number(call)?;
    super::several_with_bits(call, bits, |p, x| {
        let positive = p.with(Prim::Gt, x, 0);
        (chosen(p, positive, x, number), positive)
    })
}

/// `x` where it is positive, times the number elsewhere.
fn chosen(p: &mut Chain, positive: Reg, x: Reg, number: Scalar) -> Reg {
    let less = p.times(x, number);
    p.select(positive, x, less)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let number = number(&call.call())?;
    Ok(vec![match call.saves(Save::Aux(0)) {
        true => slope(e, call, 0, [RuleInput::Grad, RuleInput::Bits(0)], |p, [g, positive]| {
            chosen(p, positive, g, number)
        })?,
        false => slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
            let positive = p.with(Prim::Gt, x, 0);
            chosen(p, positive, g, number)
        })?,
    }])
}

fn samples() -> Vec<Sample> {
    samples::with_attrs(samples::unary_float(), Attrs::Number(Scalar::Float(0.2)))
}
