//! `all_gather`: the tensors of all ranks, joined along the first axis in rank order, on each of them.

use tonnage_core::Dim;
use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};

use super::reduce_scatter::REDUCE_SCATTER;
use crate::infer::rank_at_least;
use crate::{OpId, emit};

/// `x [k, ..] -> y [ranks * k, ..]`
pub static ALL_GATHER: OpDef = OpDef {
    id: OpId::AllGather as u16,
    name: "all_gather",
    doc: "The tensors of all ranks, joined along the first axis in rank order.",
    infer,
    axes: super::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: |call| match infer(call) {
        Ok(made) => {
            super::buckets::of_gather(call, crate::infer::cost(0, call.inputs.iter().chain(&made)))
        }
        Err(_) => Cost::default(),
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || super::samples(super::of_world, &tonnage_core::DType::ALL),
};

fn infer(call: &Call) -> Result<Types> {
    let (ty, world) = super::asked(call)?;
    rank_at_least(call.op, ty, 1, "ranks are joined along the first axis")?;
    let mut made = ty.clone();
    made.shape[0] = ty.shape[0].times(&Dim::Known(world.size()));
    Ok(super::same(&made))
}

/// The gradients of all ranks for what this one gave, added up.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&REDUCE_SCATTER, vec![g], call.attrs.clone())?)])
}
