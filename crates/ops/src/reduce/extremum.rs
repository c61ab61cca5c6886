//! The largest or the least over some axes: `max`, `min`; NaN wins.
//!
//! Of nothing it is the least value of the dtype (minus infinity for floats), or the largest. Where several elements are
//! the extremum they share the gradient evenly; NaN gets none.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Reduction, TileProgram};

use crate::{OpId, rules};

/// The largest over some axes; NaN wins.
pub static MAX: OpDef =
    row(OpId::Max, "max", "The largest over some axes; NaN wins.", |call, _| {
        super::reduction_program(call, Reduction::Max)
    });

/// The least over some axes; NaN wins.
pub static MIN: OpDef = row(OpId::Min, "min", "The least over some axes; NaN wins.", |call, _| {
    super::reduction_program(call, Reduction::Min)
});

/// What the gradient finds the extrema by.
const SAVES: Saves = Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).always()]]);

/// One of the two.
const fn row(
    id: OpId,
    name: &'static str,
    doc: &'static str,
    program: fn(&Call, bool) -> Result<TileProgram>,
) -> OpDef {
    OpDef {
        id: id as u16,
        name,
        doc,
        infer: super::of_number,
        axes: |call| rules::axes::reduction(call, false),
        mem: Mem::Alloc,
        saves: SAVES,
        remat: Remat::Cheap,
        cost: |call| super::cost(call, super::of_number, 1),
        grad: Grad::Rule(super::shared_among_equals),
        jvp: Jvp::FromGrad,
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples: super::number_samples,
    }
}
