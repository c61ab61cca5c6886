//! `mod`: what is left of the division that rounds down, broadcast: it has the sign of the divisor.
//!
//! As in Python. Integers are 0 where the divisor is 0.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// What is left of the division that rounds down, broadcast: it has the sign of the divisor.
pub static MOD: OpDef = OpDef {
    id: OpId::Mod as u16,
    name: "mod",
    doc: "What is left of the division that rounds down, broadcast: it has the sign of the divisor.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[Save::Input(0).needed_by(1), Save::Input(1).needed_by(1)]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, Prim::Mod.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Mod)),
    samples: samples::binary_divisor,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(e, call, 0, [RuleInput::Grad], |_, [g]| g)?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| {
                let times = p.two(Prim::FloorDiv, a, b);
                let part = p.mul(g, times);
                p.neg(part)
            },
        )?,
    ])
}
