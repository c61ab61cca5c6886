//! `tanh`: The hyperbolic tangent.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{emit, rules, samples};

/// The hyperbolic tangent.
pub static TANH: OpDef = OpDef {
    name: "tanh",
    doc: "The hyperbolic tangent.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Output(0).always()]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::unary_float(),
};

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], Prim::Tanh.flops())
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(TileProgram::single(Prim::Tanh, &[dtype], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    // g * (1 - y * y), as g - g * y * y: no constant to make, and y is the only thing kept.
    let (g, y) = (call.grad()?, call.output(0)?);
    let gy = emit::mul(e, g.clone(), y.clone())?;
    let gyy = emit::mul(e, gy, y)?;
    Ok(vec![emit::dense(emit::sub(e, g, gyy)?)])
}
