//! Steps of which each rank makes a part: it steps its block of a variable, with its block of the gradient and of the state.
//!
//! Elements become what they would become in one process. A norm is taken of the whole gradient, gathered for it alone, in the order of elements that one process
//! has.

use std::collections::HashMap;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Result, Shape, Source, World};
use tonnage_ops::world::gather_blocks::GATHER_BLOCKS;

use super::state::Slots;
use super::{Clip, OneStep, Optimizer, computed_in};
use crate::dispatch::apply1;
use crate::ops::Elementwise;
use crate::tape::{Gradient, norm_of, shrink};
use crate::tensor::Tensor;
use crate::train::Sharding;
use crate::variable::{Blocks, Variable};
use crate::world::sum_gradients;

/// A gradient that is added up over all ranks.
#[derive(Clone)]
pub(crate) enum SummedGradient {
    /// The whole, on every rank.
    Whole(Gradient),
    /// The block of this rank, of a gradient of that shape.
    Block(Tensor, Shape),
}

impl SummedGradient {
    pub fn is_unconnected(&self) -> bool {
        matches!(self, SummedGradient::Whole(gradient) if gradient.is_unconnected())
    }

    /// The block of this rank, where it is one, or where ranks hold blocks of the state of the variable; and those ranks.
    pub(super) fn of_block(&self, slots: &Slots, world: &World) -> Result<Option<(Tensor, World)>> {
        match (self, slots.world()) {
            (SummedGradient::Block(block, _), _) => Ok(Some((block.clone(), world.clone()))),
            (SummedGradient::Whole(Gradient::Dense(whole)), Some(world)) => {
                Ok(Some((whole.own_block(&world)?, world)))
            }
            (SummedGradient::Whole(_), _) => Ok(None),
        }
    }

    /// The whole; of a block, gathered.
    pub fn whole(&self, world: &World) -> Result<Gradient> {
        match self {
            SummedGradient::Whole(gradient) => Ok(gradient.clone()),
            SummedGradient::Block(block, shape) => {
                let attrs = Attrs::Blocks { world: world.clone(), shape: shape.clone() };
                let args = smallvec![block.into()];
                apply1(&GATHER_BLOCKS, args, attrs, Source::here()).map(Gradient::Dense)
            }
        }
    }

    fn map(&self, f: impl FnOnce(&Gradient) -> Result<Gradient>) -> Result<SummedGradient> {
        Ok(match self {
            SummedGradient::Whole(gradient) => SummedGradient::Whole(f(gradient)?),
            SummedGradient::Block(block, shape) => {
                let block = f(&Gradient::Dense(block.clone()))?.tensor()?;
                SummedGradient::Block(block, shape.clone())
            }
        })
    }
}

impl Optimizer {
    /// Makes one step from gradients of all ranks: each rank steps its blocks, of those variables that have some.
    pub(crate) fn apply_summed(
        &self,
        variables: &[Variable],
        gradients: &[SummedGradient],
        world: &World,
        source: Source,
    ) -> Result<()> {
        let variables: Vec<&Variable> = variables.iter().collect();
        self.check().map_err(|e| e.at(source))?;
        let step = || self.step(&variables, gradients, world, source);
        source.stand_for(step).map_err(|e| e.at(source))
    }

    /// One step from the gradients that each rank has, in a loop of one's own: they are added up over all ranks, in rank order, so that `n` ranks give the
    /// bits of one that adds up `n` parts. From [`Sharding::Gradients`] on each rank gets the sum of its block alone, and steps that.
    ///
    /// ```
    /// use tonnage::optim::Optimizer;
    /// use tonnage::train::Sharding;
    /// use tonnage::{Elementwise, GradientTape, Variable, tensor, world};
    /// let (world, adam) = (world::join()?, Optimizer::adam(0.1));
    /// let w = Variable::new("w", tensor([3.0f32, 4.0])?)?;
    /// adam.build([&w])?;
    /// adam.shard(&world, Sharding::State, &[w.clone()], &[true])?;
    /// let mut tape = GradientTape::new();
    /// let loss = w.read()?.square()?.sum_all()?;
    /// let own = vec![tape.gradient(&loss, &w)?];
    /// adam.apply_across(&world, Sharding::State, &[w.clone()], own)?;
    /// assert!(w.read()?.to_vec::<f32>()?[0] < 3.0);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Optimizer::apply`] has them, and [`sum_gradients`].
    #[track_caller]
    pub fn apply_across(
        &self,
        world: &World,
        sharding: Sharding,
        variables: &[Variable],
        own: Vec<Gradient>,
    ) -> Result<()> {
        let source = Source::here();
        let all: Vec<&Variable> = variables.iter().collect();
        self.check_step(&all, &own).map_err(|e| e.at(source))?;
        let in_blocks = sharding >= Sharding::Gradients && world.size() > 1 && self.steps_blocks();
        let mut sums = Vec::with_capacity(own.len());
        // The backward pass comes to the gradient of the last variable first.
        for (variable, own) in variables.iter().zip(own).rev() {
            sums.push(match own {
                Gradient::Dense(own) if in_blocks && variable.has_blocks_for(world) => {
                    SummedGradient::Block(own.reduce_blocks(world)?, variable.ty().shape)
                }
                own => {
                    let whole = sum_gradients(world, vec![own])?.pop();
                    SummedGradient::Whole(whole.unwrap_or(Gradient::Unconnected))
                }
            });
        }
        sums.reverse();
        self.apply_summed(variables, &sums, world, source)
    }

    /// Lets each rank hold a block of the state from now on, and from [`Sharding::Weights`] on of the variables, of which `dense` says whose gradients are no rows of
    /// a table. Reading one is an op of all ranks then. All of its state is there before: [`Optimizer::build`].
    ///
    /// # Errors
    /// Where the blocks cannot be made.
    pub fn shard(
        &self,
        world: &World,
        sharding: Sharding,
        variables: &[Variable],
        dense: &[bool],
    ) -> Result<()> {
        self.propose_blocks(world, sharding, variables, dense, &mut HashMap::new());
        self.cut_blocks(variables)
    }

    /// What is traced from here on takes state and variables to be in blocks; nothing is cut yet. Those that stay whole have their proposals taken back.
    pub(crate) fn propose_blocks(
        &self,
        world: &World,
        sharding: Sharding,
        variables: &[Variable],
        dense: &[bool],
        blocks: &mut HashMap<u64, Blocks>,
    ) {
        let can = world.size() > 1 && self.steps_blocks();
        for (variable, dense) in variables.iter().zip(dense) {
            let parts = self.state_like(variable);
            let of_state = parts.iter().map(|part| (part, Sharding::State));
            for (part, from) in of_state.chain([(variable, Sharding::Weights)]) {
                if can && *dense && sharding >= from && variable.has_blocks_for(world) {
                    let make = || part.blocks_for(world);
                    part.propose_blocks(blocks.entry(part.number()).or_insert_with(make));
                } else {
                    part.withdraw_blocks();
                }
            }
        }
    }

    /// Keeps the blocks of this rank alone, of what was proposed.
    pub(crate) fn cut_blocks(&self, variables: &[Variable]) -> Result<()> {
        // State may start as its variable's value.
        let state = variables.iter().flat_map(|variable| self.state_like(variable));
        state.collect::<Vec<_>>().iter().chain(variables).try_for_each(Variable::cut)
    }

    /// Whether ranks can step a block each.
    pub(crate) fn steps_blocks(&self) -> bool {
        self.rule.is_elementwise()
    }

    /// The state for a variable that can be in blocks: what has its shape.
    pub(crate) fn state_like(&self, variable: &Variable) -> Vec<Variable> {
        let state = self.state();
        let all = state.of(variable).into_iter().flat_map(Slots::all);
        all.filter(|slot| slot.ty().shape == variable.ty().shape).cloned().collect()
    }

    /// The step of this rank's block of a variable.
    pub(super) fn step_block(
        &self,
        step: &OneStep<'_>,
        gradient: Tensor,
        world: &World,
    ) -> Result<()> {
        let shape = step.variable.ty().shape;
        let is_like = |part: &Variable| part.ty().shape == shape;
        let read = |part: &Variable| match is_like(part) {
            true => part.read_block(world),
            false => part.read(),
        };
        let write = |part: &Variable, value: &Tensor| match is_like(part) {
            true => part.assign_block(world, value),
            false => part.assign(value),
        };
        let gradient = gradient.cast(computed_in(step.variable.ty().dtype))?;
        self.step_parts(step, gradient, &read, &write)?;
        self.step_average(step, &read, &write)
    }

    /// The gradients as the optimizer clips them.
    pub(super) fn clipped(
        &self,
        gradients: &[SummedGradient],
        world: &World,
    ) -> Result<Vec<SummedGradient>> {
        let each = |f: &dyn Fn(&SummedGradient) -> Result<SummedGradient>| {
            gradients.iter().map(f).collect()
        };
        match self.clip {
            None => Ok(gradients.to_vec()),
            Some(Clip::Value(most)) => each(&|g| g.map(|g| g.clip_by_value(-most, most))),
            Some(Clip::Norm(most)) => each(&|gradient| match gradient {
                SummedGradient::Whole(whole) => {
                    Ok(SummedGradient::Whole(whole.clip_by_norm(most)?))
                }
                SummedGradient::Block(..) => {
                    let factor = shrink(&gradient.whole(world)?.square_sum()?.sqrt()?, most)?;
                    gradient.map(|g| g.scale(&factor))
                }
            }),
            Some(Clip::GlobalNorm(most)) => {
                let connected = gradients.iter().filter(|gradient| !gradient.is_unconnected());
                let squares = connected.map(|gradient| gradient.whole(world)?.square_sum());
                let factor = shrink(&norm_of(squares)?, most)?;
                each(&|gradient| gradient.map(|g| g.scale(&factor)))
            }
        }
    }
}
