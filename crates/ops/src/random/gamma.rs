//! `random_gamma`: numbers of the gamma distribution, one for each shape parameter.
//!
//! A parameter of 0 gives 0, infinity gives infinity, one below 0 gives NaN.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use super::each;
use crate::OpId;

/// `(shape [..], key u32 [2]) -> [..]`
pub static RANDOM_GAMMA: OpDef = OpDef {
    id: OpId::RandomGamma as u16,
    name: "random_gamma",
    doc: "Numbers of the gamma distribution with a rate of 1, one for each shape parameter.",
    infer: each::infer,
    axes: each::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: each::weight,
    grad: Grad::Stop("a number that was drawn has no gradient along its parameter here"),
    jvp: Jvp::Stop("a number that was drawn has no gradient along its parameter here"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || each::samples(50.0),
};
