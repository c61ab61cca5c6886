//! `bitwise_and`: the bits that both integers have, broadcast.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// The bits that both integers have, broadcast.
pub static BITWISE_AND: OpDef = OpDef {
    name: "bitwise_and",
    doc: "The bits that both integers have, broadcast.",
    infer: super::binary_integer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::binary_integer, 1),
    grad: Grad::Stop("bits have no slope"),
    jvp: Jvp::Stop("bits have no slope"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::And)),
    samples: samples::binary_integer,
};
