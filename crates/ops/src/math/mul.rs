//! `mul`: the product of two tensors element by element, broadcast; integers wrap around.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The product of two tensors element by element, broadcast; integers wrap around.
pub static MUL: OpDef = OpDef {
    id: OpId::Mul as u16,
    name: "mul",
    doc: "The product of two tensors element by element, broadcast; integers wrap around.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[Save::Input(1).needed_by(0), Save::Input(0).needed_by(1)]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, Prim::Mul.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0], &[1]]),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Mul)),
    samples: samples::binary_number,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(1)], |p, [g, b]| p.mul(g, b))?,
        slope(e, call, 1, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, a]| p.mul(g, a))?,
    ])
}
