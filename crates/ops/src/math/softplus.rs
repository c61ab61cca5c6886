//! `softplus`: log(1 + exp(x)), which is x for large x.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// log(1 + exp(x)), which is x for large x.
pub static SOFTPLUS: OpDef = OpDef {
    id: OpId::Softplus as u16,
    name: "softplus",
    doc: "log(1 + exp(x)), which is x for large x.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()], &[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Softplus.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Softplus)),
    samples: samples::unary_float,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    // sigmoid(x), which is 1 - exp(-y).
    Ok(vec![match call.saves(Save::Input(0)) {
        true => slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
            let slope = p.one(Prim::Sigmoid, x);
            p.mul(g, slope)
        })?,
        false => slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
            let negated = p.neg(y);
            let rest = p.one(Prim::Expm1, negated);
            let slope = p.neg(rest);
            p.mul(g, slope)
        })?,
    }])
}
