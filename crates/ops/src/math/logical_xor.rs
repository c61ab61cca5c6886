//! `logical_xor`: where just one of the two is true, broadcast.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// Where just one of the two is true, broadcast.
pub static LOGICAL_XOR: OpDef = OpDef {
    name: "logical_xor",
    doc: "Where just one of the two is true, broadcast.",
    infer: super::binary_bool,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::binary_bool, 1),
    grad: Grad::Stop("booleans have no slope"),
    jvp: Jvp::Stop("booleans have no slope"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::Xor)),
    samples: samples::binary_bool,
};
