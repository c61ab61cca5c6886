//! `bitwise_not`: every bit of an integer inverted.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// Every bit of an integer inverted.
pub static BITWISE_NOT: OpDef = OpDef {
    name: "bitwise_not",
    doc: "Every bit of an integer inverted.",
    infer: super::unary_integer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 1),
    grad: Grad::Stop("bits have no slope"),
    jvp: Jvp::Stop("bits have no slope"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Not)),
    samples: samples::unary_integer,
};
