//! `squared_difference`: the square of the difference of two tensors, broadcast; integers wrap
//! around.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reg};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// The square of the difference of two tensors, broadcast; integers wrap around.
pub static SQUARED_DIFFERENCE: OpDef = OpDef {
    id: OpId::SquaredDifference as u16,
    name: "squared_difference",
    doc: "The square of the difference of two tensors, broadcast; integers wrap around.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, 2),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| {
        super::pairwise(call, |p, a, b| {
            let difference = p.sub(a, b);
            p.one(Prim::Square, difference)
        })
    }),
    samples: samples::binary_number,
};

fn twice(p: &mut Chain, g: Reg, a: Reg, b: Reg) -> Reg {
    let difference = p.sub(a, b);
    let twice = p.times(difference, 2);
    p.mul(g, twice)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(
            e,
            call,
            0,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| twice(p, g, a, b),
        )?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| twice(p, g, b, a),
        )?,
    ])
}
