//! Booleans: `logical_and`, `logical_or`, `logical_xor`, `logical_not`.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{OpId, rules, samples};

/// Where both are true, broadcast.
pub static LOGICAL_AND: OpDef = binary(
    OpId::LogicalAnd,
    "logical_and",
    "Where both are true, broadcast.",
    |call, _| super::two(call, Prim::And),
    samples::binary_bool,
);

/// Where one or both are true, broadcast.
pub static LOGICAL_OR: OpDef = binary(
    OpId::LogicalOr,
    "logical_or",
    "Where one or both are true, broadcast.",
    |call, _| super::two(call, Prim::Or),
    samples::binary_bool,
);

/// Where just one of the two is true, broadcast.
pub static LOGICAL_XOR: OpDef = binary(
    OpId::LogicalXor,
    "logical_xor",
    "Where just one of the two is true, broadcast.",
    |call, _| super::two(call, Prim::Xor),
    samples::binary_bool,
);

/// True where an element is false.
pub static LOGICAL_NOT: OpDef =
    unary(OpId::LogicalNot, "logical_not", "True where an element is false.", |call, _| {
        super::one(call, Prim::Not)
    });

/// Of two, by one primitive.
const fn binary(
    id: OpId,
    name: &'static str,
    doc: &'static str,
    program: Make,
    samples: fn() -> Vec<Sample>,
) -> OpDef {
    OpDef {
        id: id as u16,
        name,
        doc,
        infer: super::binary_bool,
        axes: rules::axes::elementwise,
        mem: Mem::Reuse(&[0, 1]),
        saves: Saves::NOTHING,
        remat: Remat::Cheap,
        cost: |call| super::cost(call, super::binary_bool, 1),
        grad: Grad::Stop("booleans have no slope"),
        jvp: Jvp::Stop("booleans have no slope"),
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples,
    }
}

/// Of one, by one primitive.
const fn unary(id: OpId, name: &'static str, doc: &'static str, program: Make) -> OpDef {
    OpDef {
        infer: super::unary_bool,
        mem: Mem::Reuse(&[0]),
        cost: |call| super::cost_one(call, 1),
        ..binary(id, name, doc, program, samples::unary_bool)
    }
}

/// The tile program of a call.
type Make = fn(&Call, bool) -> Result<TileProgram>;
