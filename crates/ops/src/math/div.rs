//! `div`: the quotient of two tensors, broadcast; integers are cut off towards zero, and 0 where
//! the divisor is 0.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The quotient of two tensors, broadcast; integers are cut off towards zero, and 0 where the
/// divisor is 0.
pub static DIV: OpDef = OpDef {
    id: OpId::Div as u16,
    name: "div",
    doc: "The quotient of two tensors, broadcast; integers are cut off towards zero, and 0 where the divisor is 0.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[Save::Input(1).always(), Save::Output(0).needed_by(1)]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, Prim::Div.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Div)),
    samples: samples::binary_divisor,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(1)], |p, [g, b]| p.div(g, b))?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(1), RuleInput::Output(0)],
            |p, [g, b, y]| {
                // Of the quotient y = a / b: -(g / b) * y. The output serves where a itself would.
                let part = p.div(g, b);
                let part = p.mul(part, y);
                p.neg(part)
            },
        )?,
    ])
}
