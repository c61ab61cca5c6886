//! `broadcast`: what one rank has, on all of them.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};

use super::reduce_to::REDUCE_TO;
use crate::{OpId, emit};

/// What one rank has, on all of them.
pub static BROADCAST: OpDef = OpDef {
    id: OpId::Broadcast as u16,
    name: "broadcast",
    doc: "What one rank has, on all ranks.",
    infer,
    axes: super::axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: |call| super::buckets::of_root(call, super::cost(call)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || super::samples(super::of_root, &tonnage_core::DType::ALL),
};

fn infer(call: &Call) -> Result<Types> {
    Ok(super::same(super::rooted(call)?))
}

/// What the root gave is on every rank; what the others gave is nowhere.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&REDUCE_TO, vec![g], call.attrs.clone())?)])
}
