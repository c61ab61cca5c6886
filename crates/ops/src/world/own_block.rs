//! `own_block`: the block of a tensor that this rank holds, where every rank has the whole.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};

use crate::{OpId, infer as types};

/// `x [..] -> y [block]`, with zeros where a last block has fewer elements.
pub static OWN_BLOCK: OpDef = OpDef {
    id: OpId::OwnBlock as u16,
    name: "own_block",
    doc: "Of the elements of a tensor that all ranks have, in order, the block of this rank.",
    infer,
    axes: super::flat_axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| match infer(call) {
        Ok(made) => types::cost(0, made.iter().chain(&made)),
        Err(_) => Cost::default(),
    },
    grad: Grad::Stop("ranks cut what they hold, and nothing is learned through that"),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || super::samples(super::of_world, &tonnage_core::DType::ALL),
};

fn infer(call: &Call) -> Result<Types> {
    let (ty, world) = super::asked(call)?;
    super::block_of(call, ty, world)
}
