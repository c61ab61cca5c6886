//! `add`: The sum of two tensors, broadcast; integers wrap around.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{emit, rules, samples};

/// The sum of two tensors, broadcast; integers wrap around.
pub static ADD: OpDef = OpDef {
    name: "add",
    doc: "The sum of two tensors, broadcast; integers wrap around.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::binary_number(),
};

fn cost(call: &Call) -> Cost {
    let outputs = rules::infer::binary_number(call).unwrap_or_default();
    rules::cost::elementwise(call, &outputs, Prim::Add.flops())
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let (a, b) = (call.inputs[0].dtype, call.inputs[1].dtype);
    let dtype = rules::infer::promoted(call, a, b)?;
    Ok(TileProgram::single(Prim::Add, &[a, b], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut grads = Vec::new();
    for i in 0..2 {
        grads.push(match call.needs[i] {
            true => {
                let part = call.grad()?;
                emit::dense(emit::sum_to(e, part, &call.inputs[i])?)
            }
            false => None,
        });
    }
    Ok(grads)
}
