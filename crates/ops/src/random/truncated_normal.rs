//! `random_truncated_normal`: random numbers of mean 0 and deviation 1 that lie less than 2 deviations away; a recipe of a key.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::recipe::Distribution;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types, no_scratch};

use crate::rules;

/// Random numbers of mean 0 and deviation 1 that lie less than 2 deviations away.
pub static RANDOM_TRUNCATED_NORMAL: OpDef = OpDef {
    name: "random_truncated_normal",
    doc: "Random numbers of mean 0 and deviation 1 that lie less than 2 deviations away; takes no bytes until it is written to.",
    infer,
    axes: |call| rules::axes::mixed(&[infer(call).map_or(0, |t| t[0].shape.rank())]),
    mem: Mem::Recipe,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: rules::cost::free,
    grad: Grad::Stop("it has no inputs"),
    jvp: Jvp::Stop("it has no inputs"),
    fails: Fails::Never,
    lower: Lower::Recipe(super::recipe),
    samples: || super::samples(Distribution::TruncatedNormal),
};

fn infer(call: &Call) -> Result<Types> {
    super::infer(call, Distribution::TruncatedNormal)
}
