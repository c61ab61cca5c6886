//! One step of training: forward, backward, update; whole, or its gradient in parts that are added up.
//!
//! Decision: `docs/decisions/loss-is-asserted.md`.

use tonnage_core::error::bad_argument;
use tonnage_core::{Error, ErrorKind, Result, Source, World};

use super::checkpoint::of_model;
use super::sharding::{Sharding, Shards};
use super::sums::{GradientSums, Pieces};
use crate::function::function;
use crate::make;
use crate::nn::{Layer, Mode};
use crate::ops::Elementwise;
use crate::optim::{LossScale, Optimizer, SummedGradient};
use crate::tape::{Gradient, GradientTape, finite};
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::world::among;

/// Rows to learn from: what goes in, and what should come out.
pub(super) type Batch = (Tensor, Tensor);

/// What the assertion in a step calls the loss.
const THE_LOSS: &str = "the loss";

/// All that a step is made of.
pub(super) struct TrainStep<'a, M, L> {
    pub model: &'a M,
    pub optimizer: &'a Optimizer,
    pub loss: &'a L,
    pub scale: Option<&'a LossScale>,
    /// How many parts make one step.
    pub parts: usize,
    pub source: Source,
    /// Sums of gradients, where there are several parts.
    pub sums: GradientSums,
    /// What ranks hold in blocks.
    pub shards: Shards,
}

impl<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>> TrainStep<'_, M, L> {
    /// Makes parameters that wait for a first input, in a trace of its own. First values draw random numbers: a program that makes them numbers those of its
    /// own ops from there on, and the programs of a step have to draw alike.
    pub fn build(&self, first: &Batch) -> Result<()> {
        function(|(x, _): Batch| self.forward(&x)).concrete(first).map(|_| ())
    }

    /// A part of a step: its share of the gradient is added to the sums; the rows that are not.
    pub fn part(&self, batch: Batch) -> Result<(Tensor, Pieces)> {
        let (loss, variables, gradients) = self.gradients(batch)?;
        let pieces = self.source.stand_for(|| self.sums.add(&variables, &gradients))?;
        Ok((loss, pieces))
    }

    /// The last part of a step, or all of it: the update, from its own gradient, the sums, and rows that the parts before it gave.
    pub fn last(&self, (batch, given): (Batch, Vec<Pieces>)) -> Result<Tensor> {
        let (loss, variables, gradients) = self.gradients(batch)?;
        self.source.stand_for(|| {
            if self.sums.is_whole() {
                self.apply(&variables, &gradients)?;
                return Ok(loss);
            }
            let means = self.sums.mean(&variables, &gradients, &given)?;
            self.shards.see(&variables, &means);
            let means = self.sums.over_ranks(&variables, means, &self.shards)?;
            match self.scale {
                Some(scale) => self.apply_scaled(scale, &variables, means)?,
                None => {
                    let world = &self.shards.world;
                    self.optimizer.apply_summed(&variables, &means, world, self.source)?;
                }
            }
            self.sums.clear()?;
            Ok(loss)
        })
    }

    /// The shardings that a step may have.
    pub fn shardings(&self) -> Vec<Sharding> {
        self.shards.all(&self.model.trainable(), self.optimizer, self.scale.is_some())
    }

    /// What is traced from here on is sharded so. Something was traced before, so that gradients and state are known.
    pub fn propose(&self, sharding: Sharding) {
        self.shards.propose(sharding, &self.model.trainable(), self.optimizer);
    }

    /// Keeps the blocks of this rank alone, of what was proposed.
    pub fn cut(&self) -> Result<()> {
        self.shards.cut(&self.model.trainable(), self.optimizer)
    }

    /// Gives parameters that are still recipes their bytes. A part of a step only reads them, and would have two plans: one before the
    /// first step, and one after.
    pub fn write_out(&self) -> Result<()> {
        let zeros = |variable: &Variable| make::zeros_of(&variable.ty(), self.source);
        let all = self.model.trainable();
        all.iter().try_for_each(|variable| match variable.is_in_files() || variable.is_cut() {
            true => Ok(()),
            false if variable.read()?.is_recipe() => variable.assign_add(&zeros(variable)?),
            false => Ok(()),
        })
    }

    fn gradients(&self, (x, y): Batch) -> Result<(Tensor, Vec<Variable>, Vec<Gradient>)> {
        let mut tape = GradientTape::new();
        let losses = (self.loss)(&self.forward(&x)?, &y)?;
        self.source.stand_for(|| {
            let loss = losses.mean_all()?;
            // Updates stand behind what can fail: where the loss is not finite, parameters are as before the step.
            loss.check_finite(THE_LOSS)?;
            let goal = match self.scale {
                Some(scale) => scale.scale(&loss)?,
                None => loss.clone(),
            };
            let variables = self.model.trainable();
            let gradients = tape.gradient(&goal, &variables)?;
            Ok((loss, variables, gradients))
        })
    }

    /// The model's forward pass. One that is a layer of this crate has no lines of its own.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_among(&self.shards.world, x)
    }

    fn forward_among(&self, world: &World, x: &Tensor) -> Result<Tensor> {
        let forward = || self.model.forward(x, Mode::Training);
        among(world, || match self.model.is_user_code() {
            true => forward(),
            false => self.source.stand_for(forward),
        })
    }

    /// Gradients of a scaled loss are whole on all ranks, which come to the same answer.
    fn apply_scaled(
        &self,
        scale: &LossScale,
        variables: &[Variable],
        gradients: Vec<SummedGradient>,
    ) -> Result<()> {
        let whole = gradients.into_iter().map(|gradient| gradient.whole(&self.shards.world));
        let whole = whole.collect::<Result<Vec<Gradient>>>()?;
        scale.apply(self.optimizer, variables, &whole).map(|_| ())
    }

    fn apply(&self, variables: &[Variable], gradients: &[Gradient]) -> Result<()> {
        match self.scale {
            Some(scale) => scale.apply(self.optimizer, variables, gradients).map(|_| ()),
            None => self.optimizer.apply(variables, gradients),
        }
    }

    /// Everything that training goes on from, by names that do not depend on where it was made.
    pub fn named(&self) -> Vec<(String, Variable)> {
        let of_optimizer = self.optimizer.variables().into_iter().enumerate();
        let of_optimizer =
            of_optimizer.map(|(i, v)| (format!("optimizer.{i}.{}", v.own_name()), v));
        let of_scale = self.scale.iter().flat_map(|scale| scale.variables());
        let of_scale = of_scale.map(|v| (v.name().to_string(), v));
        of_model(self.model).into_iter().chain(of_optimizer).chain(of_scale).collect()
    }

    /// Says where a loss that is not finite comes from: parameters that an earlier step left so, or else the first result of
    /// the forward pass, which is run once more, op by op.
    pub fn explained(&self, error: Error, step: u64, batch: Batch) -> Error {
        let ErrorKind::Asserted { what } = error.kind() else { return error };
        if !what.starts_with(&format!("`{THE_LOSS}`")) {
            return error;
        }
        let (x, y) = batch;
        let given = [("what goes in", &x), ("what should come out", &y)];
        let given = given.into_iter().find(|(_, tensor)| is_bad(tensor));
        // This rank alone is here: of what ranks hold in blocks it sees its own.
        let own = |variable: &Variable| match variable.blocks() {
            Some(blocks) => blocks.own.read(),
            None => variable.read(),
        };
        let own = || self.named().into_iter().find(|(_, v)| own(v).is_ok_and(|v| is_bad(&v)));
        let which = if let Some((name, tensor)) = given {
            format!("{name}, {}, is not finite", tensor.ty())
        } else if let Some((name, _)) = own() {
            format!("`{name}` is not finite since the step before")
        } else if self.model.trainable().iter().any(Variable::is_cut) {
            "it is not recomputed, since ranks hold blocks of the parameters".into()
        } else {
            let recompute = || -> Result<()> {
                let _tape = GradientTape::new();
                // The others do something else meanwhile.
                let said = self.forward_among(&World::alone(), &x)?;
                (self.loss)(&said, &y)?.mean_all()?;
                Ok(())
            };
            match finite::first_not_finite(recompute) {
                Some(first) => format!("{first} is the first that is not finite"),
                None => "recomputed with other random numbers, all is finite".into(),
            }
        };
        let what = format!("the loss of step {step} is not finite; {which}");
        let help = "use a lower rate or clip gradients; the last checkpoint is kept";
        bad_argument("fit", what, help)
    }
}

/// Whether something in it is not finite.
fn is_bad(tensor: &Tensor) -> bool {
    let all = || tensor.is_finite()?.all(crate::Axes::ALL)?.scalar::<bool>();
    tensor.dtype().is_float() && !all().unwrap_or(true)
}
