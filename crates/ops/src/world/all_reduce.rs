//! `all_reduce`: the sum over all ranks, on each of them.

use crate::{OpId, emit, rules};
use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};

/// The sum over all ranks, on each of them.
pub static ALL_REDUCE: OpDef = OpDef {
    id: OpId::AllReduce as u16,
    name: "all_reduce",
    doc: "The sum over all ranks, on each of them.",
    infer,
    axes: super::axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: |call| super::buckets::of_sum(call, super::cost(call)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || super::samples(super::of_world, &super::numbers()),
};

fn infer(call: &Call) -> Result<Types> {
    let (ty, _) = super::asked(call)?;
    rules::infer::number(call, ty)?;
    Ok(super::same(ty))
}

/// What a rank gave is part of the sum on every rank.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&ALL_REDUCE, vec![g], call.attrs.clone())?)])
}
