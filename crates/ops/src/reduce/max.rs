//! `max`: the largest over some axes; NaN wins.
//!
//! Of nothing it is the least value of the dtype (minus infinity for floats). Where several elements are
//! the largest they share the gradient evenly; NaN gets none.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Reduction;

use crate::{rules, tile};

/// The largest over some axes; NaN wins.
pub static MAX: OpDef = OpDef {
    name: "max",
    doc: "The largest over some axes; NaN wins.",
    infer: super::of_number,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    scratch: tile::reduction_scratch,
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::of_number, 1),
    grad: Grad::Rule(super::shared_among_equals),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::reduction_program(call, Reduction::Max)),
    samples: super::number_samples,
};
