//! `argmax`: where the largest element along an axis stands, as i64.
//!
//! The first of several; NaN counts as the largest there is, so that it shows.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};

use super::arg;

/// Where the largest element along an axis stands.
pub static ARGMAX: OpDef = OpDef {
    name: "argmax",
    doc: "Where the largest element along an axis stands, as i64; the first of several.",
    infer: arg::infer,
    axes: arg::axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: arg::cost,
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Slices(|k| arg::kernel("argmax", k, true)),
    samples: arg::samples,
};
