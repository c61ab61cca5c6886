//! `host_callback`: a closure of the program around, with its effects, in the order of the program.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use crate::OpId;

/// A closure of the program around, run once where the program says.
pub static HOST_CALLBACK: OpDef = OpDef {
    id: OpId::HostCallback as u16,
    name: "host_callback",
    doc: "A closure of the program around, run once where the program says.",
    infer: super::infer,
    axes: super::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: super::cost,
    grad: Grad::Stop(super::WHY),
    jvp: Jvp::Stop(super::WHY),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: super::doubling,
};
