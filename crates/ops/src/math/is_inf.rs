//! `is_inf`: where an element is either infinity.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// Where an element is either infinity.
pub static IS_INF: OpDef = OpDef {
    name: "is_inf",
    doc: "Where an element is either infinity.",
    infer: super::classify,
    axes: rules::axes::elementwise,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::classify, 1),
    grad: Grad::Stop("a class has no gradient"),
    jvp: Jvp::Stop("a class has no gradient"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::classified(call, Prim::IsInf)),
    samples: samples::unary_float,
};
