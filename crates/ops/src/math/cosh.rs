//! `cosh`: the hyperbolic cosine.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The hyperbolic cosine.
pub static COSH: OpDef = OpDef {
    id: OpId::Cosh as u16,
    name: "cosh",
    doc: "The hyperbolic cosine.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Cosh.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Cosh)),
    samples: samples::unary_float,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let sinh = p.one(Prim::Sinh, x);
        p.mul(g, sinh)
    })?])
}
