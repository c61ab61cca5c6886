//! `atan2`: the angle of the point with the left as height and the right as width, broadcast.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reg};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// The angle of the point with the left as height and the right as width, broadcast.
pub static ATAN2: OpDef = OpDef {
    id: OpId::Atan2 as u16,
    name: "atan2",
    doc: "The angle of the point with the left as height and the right as width, broadcast.",
    infer: rules::infer::binary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_float, Prim::Atan2.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Atan2)),
    samples: || samples::binary_float((0.3, 2.0), (0.2, 2.0)),
};

fn over_square(p: &mut Chain, g: Reg, a: Reg, b: Reg) -> Reg {
    let (aa, bb) = (p.one(Prim::Square, a), p.one(Prim::Square, b));
    let square = p.add(aa, bb);
    p.div(g, square)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(
            e,
            call,
            0,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| {
                let part = over_square(p, g, a, b);
                p.mul(part, b)
            },
        )?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| {
                let part = over_square(p, g, a, b);
                let part = p.mul(part, a);
                p.neg(part)
            },
        )?,
    ])
}
