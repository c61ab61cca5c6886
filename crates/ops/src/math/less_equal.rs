//! `less_equal`: where the left is at most the right, broadcast; false against NaN.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// Where the left is at most the right, broadcast; false against NaN.
pub static LESS_EQUAL: OpDef = OpDef {
    name: "less_equal",
    doc: "Where the left is at most the right, broadcast; false against NaN.",
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
    lower: Lower::Tile(|call, _| super::compared(call, Prim::Le)),
    samples: samples::binary_number,
};
