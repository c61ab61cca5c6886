//! `print`: what tensors hold, written where the user reads.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};

// No result: no gradient comes to it, and none is lost.
/// What tensors hold, written where the user reads.
pub static PRINT: OpDef = OpDef {
    name: "print",
    doc: "What tensors hold, written where the user reads.",
    infer: super::infer_nothing,
    axes: super::axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: super::cost,
    grad: Grad::Stop("it has no result"),
    jvp: Jvp::Rule(|_, _| Ok(Vec::new())),
    fails: Fails::Never,
    lower: Lower::Slices(super::kernel),
    samples: super::looking,
};
