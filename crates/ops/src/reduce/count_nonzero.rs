//! `count_nonzero`: how many elements over some axes are not 0, as i64; NaN is not 0.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::tile::{Prim, Reduction, TileProgram};
use tonnage_core::{DType, OpDef, TensorType};

use crate::tile::Chain;
use crate::{OpId, rules};

/// How many elements over some axes are not 0.
pub static COUNT_NONZERO: OpDef = OpDef {
    id: OpId::CountNonzero as u16,
    name: "count_nonzero",
    doc: "How many elements over some axes are not 0 (or true), as i64.",
    infer,
    axes: |call| rules::axes::reduction(call, true),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, infer, 2),
    grad: Grad::Stop("a count has no gradient"),
    jvp: Jvp::Stop("a count has no gradient"),
    fails: Fails::Never,
    lower: Lower::Tile(program),
    samples: || super::samples(&DType::ALL),
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let shape = rules::infer::reduced(call, &call.inputs[0])?;
    Ok(smallvec![TensorType { dtype: DType::I64, shape }])
}

fn program(call: &Call, _: bool) -> Result<TileProgram> {
    let mut program = Chain::program([call.inputs[0].dtype], DType::I64, |p, [x]| {
        let hit = match p.dtype(x) {
            DType::Bool => x,
            _ => p.with(Prim::Ne, x, 0),
        };
        (p.cast(hit, DType::I64), None)
    });
    program.reduce(Reduction::Sum, super::reduced(call)?.0);
    Ok(program)
}
