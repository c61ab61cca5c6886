//! `square`: every element times itself; integers wrap around.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// Every element times itself; integers wrap around.
pub static SQUARE: OpDef = OpDef {
    id: OpId::Square as u16,
    name: "square",
    doc: "Every element times itself; integers wrap around.",
    infer: rules::infer::unary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Square.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Square)),
    samples: samples::unary_number,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let twice = p.times(x, 2);
        p.mul(g, twice)
    })?])
}
