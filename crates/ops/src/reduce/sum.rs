//! `sum`: added up over some axes.
//!
//! The tree of additions depends on the shape and the axes alone, so the bits are the same at every
//! thread count. Integers wrap around. The sum of nothing is 0.

use smallvec::smallvec;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::tile::{Fold, TileProgram};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{emit, rules, tile};

/// Added up over some axes.
pub static SUM: OpDef = OpDef {
    name: "sum",
    doc: "Added up over some axes; the sum of nothing is 0.",
    infer,
    axes: |call| rules::axes::reduction(call, true),
    mem: Mem::Alloc,
    scratch: tile::fold_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Tile(program),
    samples: || super::samples(&DType::ALL.map(|d| if d == DType::Bool { DType::F32 } else { d })),
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::number(call, &call.inputs[0])?;
    let shape = rules::infer::reduced(call, &call.inputs[0])?;
    Ok(smallvec![TensorType { dtype: call.inputs[0].dtype, shape }])
}

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &infer(call).unwrap_or_default(), 1)
}

fn program(call: &Call, _: bool) -> Result<TileProgram> {
    super::folding(call, Fold::Sum)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let wide = super::stretch_back(e, g, call.attrs, &call.inputs[0].shape)?;
    Ok(vec![emit::dense(wide)])
}
