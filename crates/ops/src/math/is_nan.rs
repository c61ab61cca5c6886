//! `is_nan`: where an element is not a number.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// Where an element is not a number.
pub static IS_NAN: OpDef = OpDef {
    name: "is_nan",
    doc: "Where an element is not a number.",
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
    lower: Lower::Tile(|call, _| super::classified(call, Prim::IsNan)),
    samples: samples::unary_float,
};
