//! `reduce_scatter`: the sum over all ranks, a block of the first axis on each of them, in rank order.

use tonnage_core::Dim;
use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::error::bad_argument;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};

use super::all_gather::ALL_GATHER;
use crate::infer::rank_at_least;
use crate::{OpId, emit, rules};

/// `x [ranks * k, ..] -> y [k, ..]`
pub static REDUCE_SCATTER: OpDef = OpDef {
    id: OpId::ReduceScatter as u16,
    name: "reduce_scatter",
    doc: "The sum over all ranks; each has its block of the first axis.",
    infer,
    axes: super::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: |call| super::buckets::of_blocks(call, super::cost(call)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || super::samples(super::of_world, &super::numbers()),
};

fn infer(call: &Call) -> Result<Types> {
    let (ty, world) = super::asked(call)?;
    rules::infer::number(call, ty)?;
    rank_at_least(call.op, ty, 1, "ranks have blocks of the first axis")?;
    let (length, ranks) = (&ty.shape[0], world.size());
    if length.known().is_some_and(|length| !length.is_multiple_of(ranks)) {
        let what = format!("an axis of {length} has no {ranks} blocks of one length");
        return Err(bad_argument(call.op, what, "pad it to a multiple of the ranks"));
    }
    let mut made = ty.clone();
    made.shape[0] = length.divided_by(&Dim::Known(ranks));
    Ok(super::same(&made))
}

/// What a rank gave went to all, a block each: the gradients of all blocks.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&ALL_GATHER, vec![g], call.attrs.clone())?)])
}
