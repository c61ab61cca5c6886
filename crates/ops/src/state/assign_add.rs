//! `assign_add`: a variable becomes its sum with a value, in place.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, JvpCall};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types, no_scratch,
};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{emit, rules};

/// A variable becomes its sum with a value.
pub static ASSIGN_ADD: OpDef = OpDef {
    name: "assign_add",
    doc: "A variable becomes its sum with a value, in place.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Update(0),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: super::samples,
};

fn infer(call: &Call) -> Result<Types> {
    let made = super::infer(call)?;
    rules::infer::number(call, &call.inputs[0])?;
    Ok(made)
}

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], 1)
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(TileProgram::single(Prim::Add, &[dtype, dtype], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let value = match call.needs[1] {
        true => emit::dense(emit::sum_to(e, g.clone(), &call.inputs[1])?),
        false => None,
    };
    Ok(vec![emit::dense(g), value])
}

// A new tensor, not the op itself on the tangents: those are nobody's variable.
fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    let wide = match call.tangents[1].clone() {
        Some(t) => Some(emit::broadcast_to(e, t, &call.outputs[0].ty().shape)?),
        None => None,
    };
    Ok(vec![match (call.tangents[0].clone(), wide) {
        (Some(a), Some(b)) => Some(emit::add(e, a, b)?),
        (a, b) => a.or(b),
    }])
}
