//! `reduce_to`: the sum over all ranks, on one of them; zeros on the others.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};

use super::broadcast::BROADCAST;
use crate::{OpId, emit, rules};

/// The sum over all ranks, on one of them; zeros on the others.
pub static REDUCE_TO: OpDef = OpDef {
    id: OpId::ReduceTo as u16,
    name: "reduce_to",
    doc: "The sum over all ranks, on one of them; zeros on the others.",
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
    samples: || super::samples(super::of_root, &super::numbers()),
};

fn infer(call: &Call) -> Result<Types> {
    let ty = super::rooted(call)?;
    rules::infer::number(call, ty)?;
    Ok(super::same(ty))
}

/// What a rank gave is part of the one sum.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&BROADCAST, vec![g], call.attrs.clone())?)])
}
