//! `assign_sub`: a variable shrinks by a value, in place.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, JvpCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{OpId, emit, rules};

/// A variable shrinks by a value.
pub static ASSIGN_SUB: OpDef = OpDef {
    id: OpId::AssignSub as u16,
    name: "assign_sub",
    doc: "A variable shrinks by a value, in place.",
    infer: super::infer_numbers,
    axes: rules::axes::elementwise,
    mem: Mem::Update(0),
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: super::cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: super::samples,
};

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(TileProgram::single(Prim::Sub, &[dtype, dtype], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let value = match call.needs[1] {
        true => {
            let sum = emit::sum_to(e, g.clone(), &call.inputs[1])?;
            emit::dense(emit::neg(e, sum)?)
        }
        false => None,
    };
    Ok(vec![emit::dense(g), value])
}

// A new tensor, not the op itself on the tangents: those are nobody's variable.
fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    Ok(vec![match super::tangents(e, call)? {
        (Some(a), Some(b)) => Some(emit::sub(e, a, b)?),
        (None, Some(b)) => Some(emit::neg(e, b)?),
        (a, None) => a,
    }])
}
