//! `elu`: every element, or a number times exp(x) - 1 where it is negative.
//!
//! The number is not negative, so that the sign of the result is that of the input and the gradient needs
//! the result alone.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::tile::{Prim, TileProgram};
use tonnage_core::{OpDef, Scalar};

use super::leaky_relu::number;
use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// Every element, or a number times exp(x) - 1 where it is negative.
pub static ELU: OpDef = OpDef {
    id: OpId::Elu as u16,
    name: "elu",
    doc: "Every element, or a number times exp(x) - 1 where it is negative.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 13),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(program),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let alpha = number(call)?.to_f64();
    if alpha.is_nan() || alpha < 0.0 {
        let what = format!("the number {alpha} is not 0 or more");
        return Err(bad_argument(call.op, what, "use a positive one; 1 is the usual choice"));
    }
    rules::infer::unary_float(call)
}

fn program(call: &Call, _: bool) -> Result<TileProgram> {
    let alpha = number(call)?;
    super::several(call, |p, x| {
        let below = p.one(Prim::Expm1, x);
        let below = p.times(below, alpha);
        let positive = p.with(Prim::Gt, x, 0);
        p.select(positive, x, below)
    })
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    // Below 0 the slope is alpha * exp(x) = y + alpha.
    let alpha = number(&call.call())?;
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
        let steep = p.plus(y, alpha);
        let below = p.mul(g, steep);
        let positive = p.with(Prim::Gt, y, 0);
        p.select(positive, g, below)
    })?])
}

fn samples() -> Vec<Sample> {
    samples::with_attrs(samples::unary_float(), Attrs::Number(Scalar::Float(1.5)))
}
