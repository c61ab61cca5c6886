//! Random floats of one distribution: `random_normal`, `random_uniform`, `random_truncated_normal`; recipes of a key.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::recipe::Distribution;
use tonnage_core::row::{AxisMap, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};

use crate::{OpId, rules};

/// Random numbers of mean 0 and deviation 1.
pub static RANDOM_NORMAL: OpDef = row(
    OpId::RandomNormal,
    "random_normal",
    "Random numbers of mean 0 and deviation 1; takes no bytes until it is written to.",
    |call| super::infer(call, Distribution::Normal),
    || super::samples(Distribution::Normal),
);

/// Random numbers in [0, 1).
pub static RANDOM_UNIFORM: OpDef = row(
    OpId::RandomUniform,
    "random_uniform",
    "Random numbers in [0, 1); takes no bytes until it is written to.",
    |call| super::infer(call, Distribution::Uniform),
    || super::samples(Distribution::Uniform),
);

/// Random numbers of mean 0 and deviation 1 that lie less than 2 deviations away.
pub static RANDOM_TRUNCATED_NORMAL: OpDef = row(
    OpId::RandomTruncatedNormal,
    "random_truncated_normal",
    "Random numbers of mean 0 and deviation 1 that lie less than 2 deviations away; takes no bytes until it is written to.",
    |call| super::infer(call, Distribution::TruncatedNormal),
    || super::samples(Distribution::TruncatedNormal),
);

/// Numbers of one distribution.
const fn row(
    id: OpId,
    name: &'static str,
    doc: &'static str,
    infer: fn(&Call) -> Result<Types>,
    samples: fn() -> Vec<Sample>,
) -> OpDef {
    OpDef {
        id: id as u16,
        name,
        doc,
        infer,
        axes,
        mem: Mem::Recipe,
        saves: Saves::NOTHING,
        remat: Remat::Costly,
        cost: rules::cost::free,
        grad: Grad::Stop("it has no inputs"),
        jvp: Jvp::Stop("it has no inputs"),
        fails: Fails::Never,
        lower: Lower::Recipe(super::recipe),
        samples,
    }
}

fn axes(call: &Call) -> AxisMap {
    rules::axes::mixed(&[super::asked(call).map_or(0, |(_, _, shape)| shape.rank())])
}
