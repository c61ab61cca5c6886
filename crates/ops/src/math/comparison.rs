//! Comparisons of two tensors, broadcast: `equal`, `not_equal`, `less`, `less_equal`, `greater`, `greater_equal`. They give booleans.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{OpId, rules, samples};

/// Where left and right are equal, broadcast; NaN equals nothing.
pub static EQUAL: OpDef = row(
    OpId::Equal,
    "equal",
    "Where left and right are equal, broadcast; NaN equals nothing.",
    |call, _| super::compared(call, Prim::Eq),
);

/// Where left and right differ, broadcast; NaN differs from everything.
pub static NOT_EQUAL: OpDef = row(
    OpId::NotEqual,
    "not_equal",
    "Where left and right differ, broadcast; NaN differs from everything.",
    |call, _| super::compared(call, Prim::Ne),
);

/// Where the left is less than the right, broadcast; false against NaN.
pub static LESS: OpDef = row(
    OpId::Less,
    "less",
    "Where the left is less than the right, broadcast; false against NaN.",
    |call, _| super::compared(call, Prim::Lt),
);

/// Where the left is at most the right, broadcast; false against NaN.
pub static LESS_EQUAL: OpDef = row(
    OpId::LessEqual,
    "less_equal",
    "Where the left is at most the right, broadcast; false against NaN.",
    |call, _| super::compared(call, Prim::Le),
);

/// Where the left is more than the right, broadcast; false against NaN.
pub static GREATER: OpDef = row(
    OpId::Greater,
    "greater",
    "Where the left is more than the right, broadcast; false against NaN.",
    |call, _| super::compared(call, Prim::Gt),
);

/// Where the left is at least the right, broadcast; false against NaN.
pub static GREATER_EQUAL: OpDef = row(
    OpId::GreaterEqual,
    "greater_equal",
    "Where the left is at least the right, broadcast; false against NaN.",
    |call, _| super::compared(call, Prim::Ge),
);

/// A comparison by one primitive.
const fn row(id: OpId, name: &'static str, doc: &'static str, program: Make) -> OpDef {
    const FLAT: &str = "a comparison is flat wherever it has a slope at all";
    OpDef {
        id: id as u16,
        name,
        doc,
        infer: rules::infer::comparison,
        axes: rules::axes::elementwise,
        mem: Mem::Alloc,
        saves: Saves::NOTHING,
        remat: Remat::Cheap,
        cost: |call| super::cost(call, rules::infer::comparison, 1),
        grad: Grad::Stop(FLAT),
        jvp: Jvp::Stop(FLAT),
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples: samples::binary_number,
    }
}

/// The tile program of a call.
type Make = fn(&Call, bool) -> Result<TileProgram>;
