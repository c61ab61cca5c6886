//! `neg`: every element with the other sign; integers wrap around.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// Every element with the other sign; integers wrap around.
pub static NEG: OpDef = OpDef {
    id: OpId::Neg as u16,
    name: "neg",
    doc: "Every element with the other sign; integers wrap around.",
    infer: rules::infer::unary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Neg.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Neg)),
    samples: samples::unary_number,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad], |p, [g]| p.neg(g))?])
}
