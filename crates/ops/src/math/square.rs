//! `square`: Every element times itself.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{emit, rules, samples};

/// Every element times itself.
pub static SQUARE: OpDef = OpDef {
    name: "square",
    doc: "Every element times itself.",
    infer: rules::infer::unary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(0).always()]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::unary_number(),
};

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], Prim::Square.flops())
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(TileProgram::single(Prim::Square, &[dtype], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, x) = (call.grad()?, call.input(0)?);
    let twice = emit::scale(e, x, 2)?;
    Ok(vec![emit::dense(emit::mul(e, g, twice)?)])
}
