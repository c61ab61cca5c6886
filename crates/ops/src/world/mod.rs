//! Ops between the ranks of a [`World`]: each is run by all ranks, in the same order, and is one step on each of them.
//!
//! They have an effect, but for `gather_blocks` and `own_block`: none is merged, dropped or recomputed, since the other ranks would wait for it. A gradient is that of the sum over all ranks
//! of what each one computes, so the gradients of these ops are one another: what is sent goes back where it came from. Sums start at 0 and are in rank order, rounded after each
//! addition, so that they have the bits of a loop over the ranks. In a world of one rank all of them give what they are given.
//!
//! No collective fails: one that does ends the job, as the other ranks wait. So updates need not wait for those behind them.

pub mod all_gather;
pub mod all_reduce;
pub mod broadcast;
pub mod buckets;
pub mod gather_blocks;
pub mod own_block;
pub mod reduce_blocks;
pub mod reduce_scatter;
pub mod reduce_to;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{AxisMap, Call, Cost, Sample, Types};
use tonnage_core::{DType, TensorType, World};

use crate::{infer, rules};

/// The one input, and the world.
fn asked<'a>(call: &Call<'a>) -> Result<(&'a TensorType, &'a World)> {
    rules::infer::count(call, 1)?;
    match call.attrs {
        Attrs::World(world) => Ok((&call.inputs[0], world)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// The one input of an op with a root, which has to be a rank of the world.
fn rooted<'a>(call: &Call<'a>) -> Result<&'a TensorType> {
    rules::infer::count(call, 1)?;
    match call.attrs {
        Attrs::Root { world, root } if *root < world.size() => Ok(&call.inputs[0]),
        Attrs::Root { world, root } => {
            let what = format!("rank {root} of a world of {world:?}");
            Err(bad_argument(call.op, what, "ranks are counted from 0"))
        }
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// The block of a tensor that a rank holds: elements one after another.
fn block_of(call: &Call, whole: &TensorType, world: &World) -> Result<Types> {
    let Some(elements) = whole.shape.elements().known() else {
        let what = format!("blocks of {whole}, whose size is open");
        return Err(bad_argument(call.op, what, "ranks hold blocks of what has a size"));
    };
    Ok(smallvec![TensorType::new(whole.dtype, [world.block(elements)])])
}

/// Nothing of a block can be cut.
fn flat_axes(_: &Call) -> AxisMap {
    rules::axes::mixed(&[1])
}

/// What goes in comes out.
fn same(ty: &TensorType) -> Types {
    smallvec![ty.clone()]
}

/// The ranks have whole tensors: nothing can be cut.
fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs.first().map_or(0, |ty| ty.shape.rank());
    rules::axes::mixed(&[rank])
}

/// What is added up is read and written once.
fn cost(call: &Call) -> Cost {
    let made = call.inputs.first().map_or(0, infer::elements);
    infer::cost(made, call.inputs.iter().chain(call.inputs))
}

/// Lengths of an op that takes tensors of every shape, in a world of one rank.
fn samples(of: impl Fn(TensorType) -> Sample, dtypes: &[DType]) -> Vec<Sample> {
    let mut all: Vec<Sample> = dtypes.iter().map(|d| of(TensorType::new(*d, [2, 5]))).collect();
    let shapes: [&[usize]; 4] = [&[1], &[0, 3], &[3, 0], &[20_000]];
    all.extend(shapes.map(|shape| of(TensorType::new(DType::F32, shape))));
    all
}

/// All dtypes that can be added.
fn numbers() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool).collect()
}

/// Samples with attributes that are a world.
fn of_world(ty: TensorType) -> Sample {
    Sample::of(&[ty], Attrs::World(World::alone()))
}

/// Samples with attributes that name a root.
fn of_root(ty: TensorType) -> Sample {
    Sample::of(&[ty], Attrs::Root { world: World::alone(), root: 0 })
}
