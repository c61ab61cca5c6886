//! `all`: true where all are, over some axes; true of nothing.

use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Reduction;
use tonnage_core::{DType, OpDef};

use crate::{rules, tile};

/// True where all are, over some axes; true of nothing.
pub static ALL: OpDef = OpDef {
    name: "all",
    doc: "True where all are, over some axes; true of nothing.",
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
    lower: Lower::Tile(|call, _| super::reduction_program(call, Reduction::All)),
    samples: || super::samples(&[DType::Bool]),
};
