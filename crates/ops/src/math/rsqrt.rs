//! `rsqrt`: one over the square root; NaN below 0, infinity at 0.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// One over the square root; NaN below 0, infinity at 0.
pub static RSQRT: OpDef = OpDef {
    id: OpId::Rsqrt as u16,
    name: "rsqrt",
    doc: "One over the square root; NaN below 0, infinity at 0.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Rsqrt.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Rsqrt)),
    samples: || samples::unary_float_between(0.1, 4.0),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
        let square = p.one(Prim::Square, y);
        let cube = p.mul(square, y);
        let slope = p.times(cube, -0.5);
        let product = p.mul(g, slope);
        p.zero_if_unused(g, product)
    })?])
}
