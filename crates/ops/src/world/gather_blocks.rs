//! `gather_blocks`: a tensor of which each rank holds a block, whole on all of them.
//!
//! It is made of what ranks hold from step to step, as a parameter is, so it may be run again instead of held: all ranks have the same plan, and do that
//! at the same place. That is what tells it from `all_gather`, which gathers what a program of a user made.

use tonnage_core::OpDef;
use tonnage_core::TensorType;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::error::bad_argument;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, World};

use super::reduce_blocks::REDUCE_BLOCKS;
use crate::{OpId, emit, infer as types, rules};

/// `x [block] -> y [..]`
pub static GATHER_BLOCKS: OpDef = OpDef {
    id: OpId::GatherBlocks as u16,
    name: "gather_blocks",
    doc: "A tensor of which each rank has a block of the elements, whole on all of them.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| match infer(call) {
        Ok(made) => {
            super::buckets::of_gather(call, types::cost(0, call.inputs.iter().chain(&made)))
        }
        Err(_) => Cost::default(),
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn asked<'a>(call: &Call<'a>) -> Result<(&'a TensorType, TensorType)> {
    rules::infer::count(call, 1)?;
    let Attrs::Blocks { shape, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let ty = &call.inputs[0];
    Ok((ty, TensorType::new(ty.dtype, shape.clone())))
}

fn infer(call: &Call) -> Result<Types> {
    let (ty, whole) = asked(call)?;
    let Attrs::Blocks { world, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let block = super::block_of(call, &whole, world)?;
    if block.first() != Some(ty) {
        let what = format!("a block of {ty} of {whole} on {world:?}");
        return Err(bad_argument(call.op, what, "blocks are as long as the ranks make them"));
    }
    Ok(super::same(&whole))
}

fn axes(call: &Call) -> AxisMap {
    rules::axes::mixed(&[asked(call).map_or(0, |(_, whole)| whole.shape.rank())])
}

/// The gradients of all ranks for the block of this one, added up.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, Attrs::Blocks { world, .. }) = (call.grad()?, call.attrs) else {
        return Ok(vec![None]);
    };
    Ok(vec![emit::dense(e.apply(&REDUCE_BLOCKS, vec![g], Attrs::World(world.clone()))?)])
}

/// Blocks of a world of one rank: all elements, in order.
fn samples() -> Vec<Sample> {
    let of = |dtype: DType, shape: &[usize]| {
        let elements: usize = shape.iter().product();
        let attrs = Attrs::Blocks { world: World::alone(), shape: shape.into() };
        Sample::of(&[TensorType::new(dtype, [elements])], attrs)
    };
    let mut all: Vec<Sample> = DType::ALL.iter().map(|dtype| of(*dtype, &[2, 5])).collect();
    let shapes: [&[usize]; 4] = [&[1], &[0, 3], &[], &[100, 200]];
    all.extend(shapes.map(|shape| of(DType::F32, shape)));
    all
}
