//! `ceil`: the next whole number above.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// The next whole number above.
pub static CEIL: OpDef = OpDef {
    name: "ceil",
    doc: "The next whole number above.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Ceil.flops()),
    grad: Grad::Rule(super::flat),
    jvp: Jvp::Rule(super::flat_jvp),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Ceil)),
    samples: samples::unary_float,
};
