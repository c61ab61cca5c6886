//! `floor_div`: the quotient of two tensors rounded down, broadcast; integers are 0 where the
//! divisor is 0.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Prim;

use crate::{OpId, rules, samples};

/// The quotient of two tensors rounded down, broadcast; integers are 0 where the divisor is 0.
pub static FLOOR_DIV: OpDef = OpDef {
    id: OpId::FloorDiv as u16,
    name: "floor_div",
    doc: "The quotient of two tensors rounded down, broadcast; integers are 0 where the divisor is 0.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, Prim::FloorDiv.flops()),
    grad: Grad::Rule(super::flat),
    jvp: Jvp::Rule(super::flat_jvp),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::two(call, Prim::FloorDiv)),
    samples: samples::binary_divisor,
};
