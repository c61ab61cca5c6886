//! `reduce_blocks`: the sum over all ranks, of which each rank gets the block that it holds. `reduce_scatter` of a tensor of any shape.

use tonnage_core::OpDef;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};

use super::gather_blocks::GATHER_BLOCKS;
use crate::{OpId, emit, rules};

/// `x [..] -> y [block]`, with zeros where a last block has fewer elements.
pub static REDUCE_BLOCKS: OpDef = OpDef {
    id: OpId::ReduceBlocks as u16,
    name: "reduce_blocks",
    doc: "The sum over all ranks; each has its block of the elements, in order.",
    infer,
    axes: super::flat_axes,
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
    super::block_of(call, ty, world)
}

/// What a rank gave went to all, a block each: the gradients of all blocks.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, Attrs::World(world)) = (call.grad()?, call.attrs) else {
        return Ok(vec![None]);
    };
    let shape = call.inputs[0].shape.clone();
    let attrs = Attrs::Blocks { world: world.clone(), shape };
    Ok(vec![emit::dense(e.apply(&GATHER_BLOCKS, vec![g], attrs)?)])
}
