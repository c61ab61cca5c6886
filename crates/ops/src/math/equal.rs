//! `equal`: Where left and right are equal, broadcast; NaN equals nothing.

use tonnage_core::error::Result;
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Prim, TileProgram};
use tonnage_core::{DType, OpDef};

use crate::{rules, samples};

/// Where left and right are equal, broadcast; NaN equals nothing.
pub static EQUAL: OpDef = OpDef {
    name: "equal",
    doc: "Where left and right are equal, broadcast; NaN equals nothing.",
    infer: rules::infer::comparison,
    axes: rules::axes::elementwise,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Stop("a comparison is flat wherever it has a slope at all"),
    jvp: Jvp::Stop("a comparison is flat wherever it has a slope at all"),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::binary_number(),
};

fn cost(call: &Call) -> Cost {
    let outputs = rules::infer::comparison(call).unwrap_or_default();
    rules::cost::elementwise(call, &outputs, Prim::Eq.flops())
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let (a, b) = (call.inputs[0].dtype, call.inputs[1].dtype);
    let dtype = rules::infer::promoted(call, a, b)?;
    Ok(TileProgram::single(Prim::Eq, &[a, b], dtype, DType::Bool))
}
