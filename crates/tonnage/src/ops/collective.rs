//! Ops between the ranks of a world. Every rank calls them, in the same order, with tensors of the same type.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Result, Source, World};
use tonnage_ops::world;

use crate::dispatch::apply1;
use crate::tensor::Tensor;

impl Tensor {
    /// The sum over all ranks, on each of them: from 0 on and in rank order, so that the bits are those of a loop over the ranks. Takes a bucket of at most 4 MiB
    /// beside the result.
    ///
    /// A gradient that comes back is that of the sum of all ranks' losses.
    ///
    /// ```
    /// use tonnage::{tensor, world};
    /// let world = world::join()?;
    /// let x = tensor([1.0f32, 2.0])?;
    /// assert_eq!(x.all_reduce(&world)?.to_vec::<f32>()?, [1.0, 2.0]); // one rank
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn all_reduce(&self, world: &World) -> Result<Tensor> {
        let attrs = Attrs::World(world.clone());
        apply1(&world::all_reduce::ALL_REDUCE, smallvec![self.into()], attrs, Source::here())
    }

    /// The sum over all ranks, of which each rank gets its block of the first axis, in rank order. Its length is a multiple of the ranks.
    #[track_caller]
    pub fn reduce_scatter(&self, world: &World) -> Result<Tensor> {
        let attrs = Attrs::World(world.clone());
        let op = &world::reduce_scatter::REDUCE_SCATTER;
        apply1(op, smallvec![self.into()], attrs, Source::here())
    }

    /// The tensors of all ranks, joined along the first axis in rank order.
    #[track_caller]
    pub fn all_gather(&self, world: &World) -> Result<Tensor> {
        let attrs = Attrs::World(world.clone());
        apply1(&world::all_gather::ALL_GATHER, smallvec![self.into()], attrs, Source::here())
    }

    /// What rank `root` has, on all ranks.
    #[track_caller]
    pub fn broadcast(&self, world: &World, root: usize) -> Result<Tensor> {
        let attrs = Attrs::Root { world: world.clone(), root };
        apply1(&world::broadcast::BROADCAST, smallvec![self.into()], attrs, Source::here())
    }

    /// The sum over all ranks on rank `root`, and zeros on the others.
    #[track_caller]
    pub fn reduce_to(&self, world: &World, root: usize) -> Result<Tensor> {
        let attrs = Attrs::Root { world: world.clone(), root };
        apply1(&world::reduce_to::REDUCE_TO, smallvec![self.into()], attrs, Source::here())
    }
}
