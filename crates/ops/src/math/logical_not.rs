//! `logical_not`: true where an element is false.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::Prim;

use crate::{rules, samples};

/// True where an element is false.
pub static LOGICAL_NOT: OpDef = OpDef {
    name: "logical_not",
    doc: "True where an element is false.",
    infer: super::unary_bool,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 1),
    grad: Grad::Stop("booleans have no slope"),
    jvp: Jvp::Stop("booleans have no slope"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Not)),
    samples: samples::unary_bool,
};
