//! `hard_swish`: x * relu6(x + 3) / 6.
//!
//! The slope is 0 at -3 and 1 at 3.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reg};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// x * relu6(x + 3) / 6.
pub static HARD_SWISH: OpDef = OpDef {
    id: OpId::HardSwish as u16,
    name: "hard_swish",
    doc: "x * relu6(x + 3) / 6.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 5),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::several(call, program)),
    samples: samples::unary_float,
};

fn program(p: &mut Chain, x: Reg) -> Reg {
    let moved = p.plus(x, 3);
    let moved = p.with(Prim::Max, moved, 0);
    let moved = p.with(Prim::Min, moved, 6);
    let share = p.times(moved, 1.0 / 6.0);
    p.mul(x, share)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        // 0 to -3, then x / 3 + 1 / 2, then 1 from 3 on.
        let middle = p.times(x, 1.0 / 3.0);
        let middle = p.plus(middle, 0.5);
        let one = p.number(1, x);
        let far = p.with(Prim::Ge, x, 3);
        let slope = p.select(far, one, middle);
        let dead = p.with(Prim::Le, x, -3);
        let slope = p.zero_or(dead, slope);
        p.mul(g, slope)
    })?])
}
