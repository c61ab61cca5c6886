//! `asin`: the inverse of the sine; NaN beyond 1.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The inverse of the sine; NaN beyond 1.
pub static ASIN: OpDef = OpDef {
    id: OpId::Asin as u16,
    name: "asin",
    doc: "The inverse of the sine; NaN beyond 1.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Asin.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Asin)),
    samples: || samples::unary_float_between(-0.9, 0.9),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let square = p.one(Prim::Square, x);
        let square = p.neg(square);
        let inside = p.plus(square, 1);
        let slope = p.one(Prim::Rsqrt, inside);
        p.mul(g, slope)
    })?])
}
