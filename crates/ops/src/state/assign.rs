//! `assign`: a variable becomes a value, in place.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, JvpCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::TileProgram;

use crate::{OpId, emit, rules};

/// A variable becomes a value.
pub static ASSIGN: OpDef = OpDef {
    id: OpId::Assign as u16,
    name: "assign",
    doc: "A variable becomes a value, in place.",
    infer: super::infer,
    axes: rules::axes::elementwise,
    mem: Mem::Update(0),
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: super::samples,
};

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], 1)
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    let mut program = TileProgram::loading(&[dtype, dtype]);
    program.store(1, dtype);
    Ok(program)
}

// What the variable was before has no part in what it is now.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![None, emit::dense(emit::sum_to(e, g, &call.inputs[1])?)])
}

// A new tensor, not the op itself on the tangents: those are nobody's variable.
fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    let Some(t) = call.tangents[1].clone() else { return Ok(vec![None]) };
    Ok(vec![Some(emit::broadcast_to(e, t, &call.outputs[0].ty().shape)?)])
}
