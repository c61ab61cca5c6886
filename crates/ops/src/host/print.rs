//! `print`: what tensors hold, written where the user reads.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use crate::OpId;

// No result: no gradient comes to it, and none is lost.
/// What tensors hold, written where the user reads.
pub static PRINT: OpDef = OpDef {
    id: OpId::Print as u16,
    name: "print",
    doc: "What tensors hold, written where the user reads.",
    infer: super::infer_nothing,
    axes: super::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: super::cost,
    grad: Grad::Stop("it has no result"),
    jvp: Jvp::Rule(|_, _| Ok(Vec::new())),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: super::looking,
};
