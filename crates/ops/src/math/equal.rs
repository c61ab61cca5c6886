//! `equal`: where left and right are equal, broadcast; NaN equals nothing.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// Where left and right are equal, broadcast; NaN equals nothing.
pub static EQUAL: OpDef = OpDef {
    name: "equal",
    doc: "Where left and right are equal, broadcast; NaN equals nothing.",
    infer: rules::infer::comparison,
    axes: rules::axes::elementwise,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::comparison, 1),
    grad: Grad::Stop("a comparison is flat wherever it has a slope at all"),
    jvp: Jvp::Stop("a comparison is flat wherever it has a slope at all"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::compared(call, Prim::Eq)),
    samples: samples::binary_number,
};
