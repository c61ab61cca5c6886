//! `pow`: the left to the power of the right, broadcast.
//!
//! libm's special cases. Integers wrap around, and a negative power of one is 0 but for 1 and -1.
//! The slope along the exponent is 0 where the base is not positive.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The left to the power of the right, broadcast.
pub static POW: OpDef = OpDef {
    id: OpId::Pow as u16,
    name: "pow",
    doc: "The left to the power of the right, broadcast.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[
        Save::Input(0).always(),
        Save::Input(1).always(),
        Save::Output(0).needed_by(1),
    ]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, Prim::Pow.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Pow)),
    samples: || samples::binary_between((0.3, 2.5), (0.0, 3.0)),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(
            e,
            call,
            0,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| {
                // b * a^(b - 1), and 0 where b is: there 0 would meet an infinity.
                let less = p.plus(b, -1);
                let power = p.two(Prim::Pow, a, less);
                let slope = p.mul(b, power);
                let flat = p.with(Prim::Eq, b, 0);
                let slope = p.zero_or(flat, slope);
                p.mul(g, slope)
            },
        )?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Output(0)],
            |p, [g, a, y]| {
                // y * log(a), and 0 where a is not positive.
                let positive = p.with(Prim::Gt, a, 0);
                let one = p.number(1, a);
                let a = p.select(positive, a, one);
                let log = p.one(Prim::Log, a);
                let slope = p.mul(y, log);
                let slope = p.or_zero(positive, slope);
                p.mul(g, slope)
            },
        )?,
    ])
}
