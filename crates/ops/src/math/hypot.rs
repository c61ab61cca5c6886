//! `hypot`: the length of the pair of left and right, broadcast, without overflow on the way.
//!
//! It has no slope at 0: the gradient there is NaN.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The length of the pair of left and right, broadcast, without overflow on the way.
pub static HYPOT: OpDef = OpDef {
    id: OpId::Hypot as u16,
    name: "hypot",
    doc: "The length of the pair of left and right, broadcast, without overflow on the way.",
    infer: rules::infer::binary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[
        Save::Input(0).needed_by(0),
        Save::Input(1).needed_by(1),
        Save::Output(0).always(),
    ]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_float, Prim::Hypot.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Hypot)),
    samples: || samples::binary_float((0.3, 2.0), (0.2, 2.0)),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(
            e,
            call,
            0,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Output(0)],
            |p, [g, a, y]| {
                let share = p.div(a, y);
                p.mul(g, share)
            },
        )?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(1), RuleInput::Output(0)],
            |p, [g, b, y]| {
                let share = p.div(b, y);
                p.mul(g, share)
            },
        )?,
    ])
}
