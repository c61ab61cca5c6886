//! `switch`: one of any number of branches, as an integer says. Only that one runs, and all share their
//! memory. A number that no branch has, negative ones included, takes the last one, so that no data can fail.
//!
//! Inputs: the integer, then whatever the branches use. Regions: the branches; each takes all inputs but the
//! integer.

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::recipe::Key;
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Region, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Attrs, DType, OpDef, TensorType};

use super::{branch, cond};
use crate::{OpId, math};

/// One of any number of branches, as an integer says.
pub static SWITCH: OpDef = OpDef {
    id: OpId::Switch as u16,
    name: "switch",
    doc: "One of any number of branches, as an integer says; only that one runs, the last one for any other number.",
    infer,
    axes: |call| super::mixed_axes(infer, call),
    mem: Mem::Regions,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: branch::cost,
    grad: Grad::Rule(|e, call| branch::grad(&SWITCH, e, call)),
    jvp: Jvp::Together(|e, call| branch::jvp(&SWITCH, e, call)),
    fails: Fails::Never,
    lower: Lower::Region(Region::Branch),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let (index, made) = branch::infer(call)?;
    if call.regions.is_empty() {
        return Err(bad_argument(call.op, "no branches", "give at least one"));
    }
    if !index.dtype.is_integer() || index.shape.rank() != 0 {
        let what = format!("the index is {index}");
        return Err(bad_argument(call.op, what, "use one integer"));
    }
    Ok(made)
}

fn samples() -> Vec<Sample> {
    let ops = [&math::tanh::TANH, &math::exp::EXP, &math::square::SQUARE];
    let branches = ops.map(cond::sample_branch).into_iter().collect::<Result<Vec<_>>>();
    let Ok(regions) = branches else { return Vec::new() };
    let sample = |dtype, values| {
        let types = [TensorType::new(dtype, ()), TensorType::new(DType::F32, [2, 3])];
        let attrs = Attrs::Branch { key: Some(Key::Fixed([1, 2])), updates: Vec::new() };
        let mut sample = Sample::of(&types, attrs).with(0, values);
        sample.regions = regions.clone();
        sample
    };
    vec![
        sample(DType::I32, Values::Below(3)),
        sample(DType::U8, Values::Between(3.0, 9.0)),
        sample(DType::I64, Values::Between(-9.0, -1.0)),
    ]
}
