//! `log`: The natural logarithm; NaN below 0, minus infinity at 0.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{emit, rules, samples};

/// The natural logarithm; NaN below 0, minus infinity at 0.
pub static LOG: OpDef = OpDef {
    name: "log",
    doc: "The natural logarithm; NaN below 0, minus infinity at 0.",
    infer: rules::infer::unary_float,
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
    samples: || samples::unary_float_between(0.1, 4.0),
};

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], Prim::Log.flops())
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    Ok(TileProgram::single(Prim::Log, &[dtype], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, x) = (call.grad()?, call.input(0)?);
    Ok(vec![emit::dense(emit::div(e, g, x)?)])
}
