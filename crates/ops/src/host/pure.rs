//! `pure_callback`: a closure without effects, which may be run again, once for two, or not at all.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use crate::OpId;

/// A closure of the program around that does nothing but compute.
pub static PURE_CALLBACK: OpDef = OpDef {
    id: OpId::PureCallback as u16,
    name: "pure_callback",
    doc: "A closure of the program around that does nothing but compute.",
    infer: super::infer,
    axes: super::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: super::cost,
    grad: Grad::Stop(super::WHY),
    jvp: Jvp::Stop(super::WHY),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: super::doubling,
};
