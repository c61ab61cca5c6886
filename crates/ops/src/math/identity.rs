//! `identity`: the same values in bytes of their own, close together.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::tile::TileProgram;

use crate::{OpId, emit, rules, samples};

/// The same values in bytes of their own.
pub static IDENTITY: OpDef = OpDef {
    id: OpId::Identity as u16,
    name: "identity",
    doc: "The same values in bytes of their own, close together.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::unary_any(),
};

pub(super) fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    Ok(call.inputs.iter().cloned().collect())
}

pub(super) fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], 0)
}

pub(super) fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    let mut program = TileProgram::loading(&[dtype]);
    program.store(0, dtype);
    Ok(program)
}

fn grad(_: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![emit::dense(call.grad()?)])
}
