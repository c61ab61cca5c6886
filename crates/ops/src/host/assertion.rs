//! `assertion`: a call that must hold, or the program ends here with what was seen.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use crate::OpId;

// No result: no gradient comes to it, and none is lost.
/// A call that fails unless something holds.
pub static ASSERTION: OpDef = OpDef {
    id: OpId::Assertion as u16,
    name: "assertion",
    doc: "A call that fails unless something holds.",
    infer: super::infer_nothing,
    axes: super::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: super::cost,
    grad: Grad::Stop("it has no result"),
    jvp: Jvp::Rule(|_, _| Ok(Vec::new())),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: super::looking,
};
