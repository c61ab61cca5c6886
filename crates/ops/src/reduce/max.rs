//! `max`: the largest over some axes.
//!
//! NaN wins. The maximum of nothing is the least value of the dtype (minus infinity for floats). Where
//! several elements are the largest they share the gradient evenly.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, Types};
use tonnage_core::tile::{Fold, TileProgram};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{emit, math, rules, tile};

/// The largest over some axes.
pub static MAX: OpDef = OpDef {
    name: "max",
    doc: "The largest over some axes; NaN wins.",
    infer,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    scratch: tile::fold_scratch,
    saves: Saves::one_of(&[&[Keep::Input(0).always(), Keep::Output(0).always()]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
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
    super::folding(call, Fold::Max)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let Attrs::Reduce { axes, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(&call.call()));
    };
    let (g, x, y) = (call.grad()?, call.input(0)?, call.output(0)?);
    let shape = &call.inputs[0].shape;
    let largest = super::stretch_back(e, y, call.attrs, shape)?;
    let hit = emit::binary(e, &math::equal::EQUAL, x, largest)?;
    let hit = emit::cast(e, hit, call.inputs[0].dtype)?;
    let hits = emit::sum(e, hit.clone(), axes.clone(), true)?;
    let kept = hits.ty().shape.clone();
    let g = emit::reshape(e, g, &kept)?;
    let share = emit::div(e, g, hits)?;
    Ok(vec![emit::dense(emit::mul(e, hit, share)?)])
}
