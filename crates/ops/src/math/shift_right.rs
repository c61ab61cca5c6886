//! `shift_right`: the bits of the left moved down by as many places as the right says; signed
//! integers keep their sign.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// The bits of the left moved down by as many places as the right says; signed integers keep their
/// sign.
pub static SHIFT_RIGHT: OpDef = OpDef {
    name: "shift_right",
    doc: "The bits of the left moved down by as many places as the right says; signed integers keep their sign.",
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
    lower: Lower::Tile(|call, _| super::two(call, Prim::Shr)),
    samples: samples::binary_shift,
};
