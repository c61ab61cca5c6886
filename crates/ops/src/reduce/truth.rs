//! Reductions of booleans over some axes: `any`, `all`.

use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::{Reduction, TileProgram};
use tonnage_core::{DType, OpDef};

use crate::{OpId, rules};

/// True where one is, over some axes; false of nothing.
pub static ANY: OpDef =
    row(OpId::Any, "any", "True where one is, over some axes; false of nothing.", |call, _| {
        super::reduction_program(call, Reduction::Any)
    });

/// True where all are, over some axes; true of nothing.
pub static ALL: OpDef =
    row(OpId::All, "all", "True where all are, over some axes; true of nothing.", |call, _| {
        super::reduction_program(call, Reduction::All)
    });

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
        infer: super::of_bool,
        axes: |call| rules::axes::reduction(call, false),
        mem: Mem::Alloc,
        saves: Saves::NOTHING,
        remat: Remat::Cheap,
        cost: |call| super::cost(call, super::of_bool, 1),
        grad: Grad::Stop("booleans have no slope"),
        jvp: Jvp::Stop("booleans have no slope"),
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples: || super::samples(&[DType::Bool]),
    }
}
