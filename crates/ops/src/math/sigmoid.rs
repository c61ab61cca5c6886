//! `sigmoid`: 1 / (1 + exp(-x)).
//!
//! Small values on the negative side keep their digits.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// 1 / (1 + exp(-x)).
pub static SIGMOID: OpDef = OpDef {
    id: OpId::Sigmoid as u16,
    name: "sigmoid",
    doc: "1 / (1 + exp(-x)).",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Sigmoid.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Sigmoid)),
    samples: samples::unary_float,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
        let rest = p.neg(y);
        let rest = p.plus(rest, 1);
        let slope = p.mul(y, rest);
        p.mul(g, slope)
    })?])
}
