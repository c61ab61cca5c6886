//! `tanh`: the hyperbolic tangent.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The hyperbolic tangent.
pub static TANH: OpDef = OpDef {
    id: OpId::Tanh as u16,
    name: "tanh",
    doc: "The hyperbolic tangent.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Tanh.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Tanh)),
    samples: samples::unary_float,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
        let square = p.one(Prim::Square, y);
        let less = p.neg(square);
        p.fma(g, less, g)
    })?])
}
