//! `log1p`: the natural logarithm of 1 more than every element; exact to the last bits near 0.
//!
//! NaN below -1, minus infinity at -1.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The natural logarithm of 1 more than every element; exact to the last bits near 0.
pub static LOG1P: OpDef = OpDef {
    id: OpId::Log1p as u16,
    name: "log1p",
    doc: "The natural logarithm of 1 more than every element; exact to the last bits near 0.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Log1p.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Log1p)),
    samples: || samples::unary_float_between(-0.5, 4.0),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let more = p.plus(x, 1);
        p.div(g, more)
    })?])
}
