//! `any`: true where one is, over some axes; false of nothing.

use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Reduction;
use tonnage_core::{DType, OpDef};

use crate::{rules, tile};

/// True where one is, over some axes; false of nothing.
pub static ANY: OpDef = OpDef {
    name: "any",
    doc: "True where one is, over some axes; false of nothing.",
    infer: super::of_bool,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    scratch: tile::reduction_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::of_bool, 1),
    grad: Grad::Stop("booleans have no slope"),
    jvp: Jvp::Stop("booleans have no slope"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::reduction_program(call, Reduction::Any)),
    samples: || super::samples(&[DType::Bool]),
};
