//! `sign`: -1, 0 or 1; zeros keep their sign and NaN stays NaN.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// -1, 0 or 1; zeros keep their sign and NaN stays NaN.
pub static SIGN: OpDef = OpDef {
    name: "sign",
    doc: "-1, 0 or 1; zeros keep their sign and NaN stays NaN.",
    infer: rules::infer::unary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Sign.flops()),
    grad: Grad::Rule(super::flat),
    jvp: Jvp::Rule(super::flat_jvp),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Sign)),
    samples: samples::unary_number,
};
