//! `lgamma`: the logarithm of the absolute value of the gamma function.
//!
//! Infinite at 0 and at the negative integers.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The logarithm of the absolute value of the gamma function.
pub static LGAMMA: OpDef = OpDef {
    id: OpId::Lgamma as u16,
    name: "lgamma",
    doc: "The logarithm of the absolute value of the gamma function.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Lgamma.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Lgamma)),
    samples: || samples::unary_float_between(0.2, 6.0),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let slope = p.one(Prim::Digamma, x);
        p.mul(g, slope)
    })?])
}
