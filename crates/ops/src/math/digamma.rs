//! `digamma`: the slope of `lgamma`.
//!
//! Minus infinity at 0, NaN at the negative integers.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The slope of `lgamma`.
pub static DIGAMMA: OpDef = OpDef {
    id: OpId::Digamma as u16,
    name: "digamma",
    doc: "The slope of lgamma.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Digamma.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Digamma)),
    samples: || samples::unary_float_between(0.2, 6.0),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let first = p.number(1, x);
        let slope = p.two(Prim::Polygamma, first, x);
        p.mul(g, slope)
    })?])
}
