//! `random_poisson`: whole numbers of the Poisson distribution, one for each rate, as floats.
//!
//! A rate of 0 gives 0, one below 0 or infinite gives NaN.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use super::each;
use crate::OpId;

/// `(rate [..], key u32 [2]) -> [..]`
pub static RANDOM_POISSON: OpDef = OpDef {
    id: OpId::RandomPoisson as u16,
    name: "random_poisson",
    doc: "Whole numbers of the Poisson distribution, one for each rate, as floats.",
    infer: each::infer,
    axes: each::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: each::weight,
    grad: Grad::Stop("a whole number has no gradient"),
    jvp: Jvp::Stop("a whole number has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || each::samples(300.0),
};
