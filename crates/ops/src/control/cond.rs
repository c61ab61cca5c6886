//! `cond`: one of two branches, as a boolean says. Only that one runs, and both share their memory.
//!
//! Inputs: the boolean, then whatever the branches use. Regions: what to do where it is true, and where
//! it is false; each takes all inputs but the boolean.

use std::sync::Arc;

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::recipe::Key;
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Region, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Attrs, DType, Emit, Kind, OpDef, TensorType};

use super::branch;
use crate::{OpId, math};

/// One of two branches, as a boolean says.
pub static COND: OpDef = OpDef {
    id: OpId::Cond as u16,
    name: "cond",
    doc: "One of two branches, as a boolean says; only that one runs.",
    infer,
    axes: |call| super::mixed_axes(infer, call),
    mem: Mem::Regions,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: branch::cost,
    grad: Grad::Rule(|e, call| branch::grad(&COND, e, call)),
    jvp: Jvp::Together(|e, call| branch::jvp(&COND, e, call)),
    fails: Fails::Never,
    lower: Lower::Region(Region::Branch),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let (choice, made) = branch::infer(call)?;
    if call.regions.len() != 2 {
        return Err(bad_argument(call.op, "not two branches", "give one for true, one for false"));
    }
    if choice.dtype != DType::Bool || choice.shape.rank() != 0 {
        let what = format!("the condition is {choice}");
        return Err(bad_argument(call.op, what, "use one boolean: compare, then reduce"));
    }
    Ok(made)
}

/// A branch that applies one op.
pub(super) fn sample_branch(op: &'static OpDef) -> Result<Arc<Graph>> {
    let mut builder = Builder::new();
    let x = builder.input(TensorType::new(DType::F32, [2, 3]), Kind::Activation, None);
    let y = builder.apply(op, vec![x], Attrs::None)?;
    Ok(Arc::new(builder.finish(&[y])?))
}

fn samples() -> Vec<Sample> {
    let branches = [sample_branch(&math::tanh::TANH), sample_branch(&math::exp::EXP)];
    let Ok(regions) = branches.into_iter().collect::<Result<Vec<_>>>() else { return Vec::new() };
    let types = [TensorType::new(DType::Bool, ()), TensorType::new(DType::F32, [2, 3])];
    let attrs = Attrs::Branch { key: Some(Key::Fixed([1, 2])), updates: Vec::new() };
    let mut sample = Sample::of(&types, attrs).with(0, Values::Below(2));
    sample.regions = regions;
    vec![sample]
}
