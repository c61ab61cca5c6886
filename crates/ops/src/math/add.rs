//! `add`: the sum of two tensors, broadcast; integers wrap around.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The sum of two tensors, broadcast; integers wrap around.
pub static ADD: OpDef = OpDef {
    id: OpId::Add as u16,
    name: "add",
    doc: "The sum of two tensors, broadcast; integers wrap around.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, Prim::Add.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Add)),
    samples: samples::binary_number,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(e, call, 0, [RuleInput::Grad], |_, [g]| g)?,
        slope(e, call, 1, [RuleInput::Grad], |_, [g]| g)?,
    ])
}
