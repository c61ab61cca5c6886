//! `digamma`: the slope of `lgamma`.
//!
//! Minus infinity at 0, NaN at the negative integers.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// The slope of `lgamma`.
pub static DIGAMMA: OpDef = OpDef {
    name: "digamma",
    doc: "The slope of lgamma.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Digamma.flops()),
    grad: Grad::Stop("its slope, the trigamma function, is not in the table"),
    jvp: Jvp::Stop("its slope, the trigamma function, is not in the table"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Digamma)),
    samples: || samples::unary_float_between(0.2, 6.0),
};
