//! Bits of integers: `bitwise_and`, `bitwise_or`, `bitwise_xor`, `bitwise_not`, `shift_left`, `shift_right`.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{OpId, rules, samples};

/// The bits that both integers have, broadcast.
pub static BITWISE_AND: OpDef = binary(
    OpId::BitwiseAnd,
    "bitwise_and",
    "The bits that both integers have, broadcast.",
    |call, _| super::two(call, Prim::And),
    samples::binary_integer,
);

/// The bits that one or both integers have, broadcast.
pub static BITWISE_OR: OpDef = binary(
    OpId::BitwiseOr,
    "bitwise_or",
    "The bits that one or both integers have, broadcast.",
    |call, _| super::two(call, Prim::Or),
    samples::binary_integer,
);

/// The bits that just one of two integers has, broadcast.
pub static BITWISE_XOR: OpDef = binary(
    OpId::BitwiseXor,
    "bitwise_xor",
    "The bits that just one of two integers has, broadcast.",
    |call, _| super::two(call, Prim::Xor),
    samples::binary_integer,
);

/// Every bit of an integer inverted.
pub static BITWISE_NOT: OpDef =
    unary(OpId::BitwiseNot, "bitwise_not", "Every bit of an integer inverted.", |call, _| {
        super::one(call, Prim::Not)
    });

/// The bits of the left moved up by as many places as the right says; 0 from its width on.
pub static SHIFT_LEFT: OpDef = binary(
    OpId::ShiftLeft,
    "shift_left",
    "The bits of the left moved up by as many places as the right says; 0 from its width on.",
    |call, _| super::two(call, Prim::Shl),
    samples::binary_shift,
);

/// The bits of the left moved down by as many places as the right says; signed integers keep their
/// sign.
pub static SHIFT_RIGHT: OpDef = binary(
    OpId::ShiftRight,
    "shift_right",
    "The bits of the left moved down by as many places as the right says; signed integers keep their sign.",
    |call, _| super::two(call, Prim::Shr),
    samples::binary_shift,
);

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
        infer: super::binary_integer,
        axes: rules::axes::elementwise,
        mem: Mem::Reuse(&[0, 1]),
        saves: Saves::NOTHING,
        remat: Remat::Cheap,
        cost: |call| super::cost(call, super::binary_integer, 1),
        grad: Grad::Stop("bits have no slope"),
        jvp: Jvp::Stop("bits have no slope"),
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples,
    }
}

/// Of one, by one primitive.
const fn unary(id: OpId, name: &'static str, doc: &'static str, program: Make) -> OpDef {
    OpDef {
        infer: super::unary_integer,
        mem: Mem::Reuse(&[0]),
        cost: |call| super::cost_one(call, 1),
        ..binary(id, name, doc, program, samples::unary_integer)
    }
}

/// The tile program of a call.
type Make = fn(&Call, bool) -> Result<TileProgram>;
