//! How to train, and what it comes to.

use std::sync::Arc;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Error, Result, Source, World};
use tonnage_plan::Plan;

use super::callback::{Callback, Go, Progress};
use super::checkpoint::{Checkpoints, Position};
use super::run;
use super::sharding::{ShardedPlan, Sharding, Shards};
use super::step::{Batch, TrainStep};
use super::sums::GradientSums;
use crate::data::{Dataset, Feed, Share, total};
use crate::function::{Budget, Function};
use crate::nn::Layer;
use crate::optim::{LossScale, Optimizer};
use crate::tensor::Tensor;
use crate::tree::Tree;

/// What training came to.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The mean loss of each time through the data.
    pub losses: Vec<f64>,
    /// Where it ended.
    pub position: Position,
    /// Steps that this run made: none where training that was over is resumed.
    pub steps: u64,
    /// What the plan of a step said that it would take.
    pub predicted: Bytes,
    /// The most that a step was seen to take; nothing where there was none.
    pub measured: Bytes,
    /// What ranks hold in blocks.
    pub sharding: Sharding,
    /// Bytes that this rank was to send to others in each step; of ranks that send different amounts, the most.
    pub predicted_sent: Bytes,
    /// Bytes that the programs of all steps sent.
    pub sent: Bytes,
    /// What the engine that moves bytes between ranks took of this process when it joined: in no plan, and beside what a step takes.
    pub engine: Bytes,
    /// What the data hold at most beside it: the order of rows, or all that the steps of a pipeline hold back.
    pub data: Bytes,
    /// Time in steps.
    pub seconds: f64,
}

/// How to train.
///
/// ```
/// use tonnage::data::Dataset;
/// use tonnage::nn::{Activation, Dense, Sequential};
/// use tonnage::optim::Optimizer;
/// use tonnage::train::{Fit, Go};
/// use tonnage::{random_normal, set_seed, DType, Tensor, Part};
/// set_seed(1);
/// let x = random_normal([256, 4], DType::F32)?;
/// let y = x.slice(&[Part::ALL, (0..1).into()])?.greater(0.0)?.cast(DType::I64)?.reshape([256])?;
/// # use tonnage::Elementwise;
/// let data = Dataset::of((x, y))?;
/// let model = Sequential::new().then(Dense::new(16)).then(Activation::Relu).then(Dense::new(2));
/// let optimizer = Optimizer::adam(0.01);
/// let loss = |logits: &Tensor, labels: &Tensor| logits.sparse_cross_entropy(labels);
/// let history = Fit::new(20, 32).budget("1MiB".parse()?).run(&model, &optimizer, &data, loss, |_| Go::On)?;
/// assert!(history.losses.last() < history.losses.first());
/// assert_eq!(history.predicted, history.measured);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fit {
    pub(super) epochs: u64,
    pub(super) batch: usize,
    pub(super) parts: usize,
    pub(super) most: Option<u64>,
    pub(super) seed: u64,
    budget: Option<Budget>,
    scale: Option<LossScale>,
    pub(super) held_out: Option<Dataset<Batch>>,
    pub(super) checkpoints: Option<Checkpoints>,
    pub(super) every: u64,
    pub(super) resume: bool,
    pub(super) world: World,
    pub(super) sharding: Option<Sharding>,
}

impl Fit {
    /// `epochs` epochs, in batches of `batch` rows. A last batch that is smaller is left out, so that all steps have
    /// one plan.
    pub fn new(epochs: u64, batch: usize) -> Fit {
        Fit {
            epochs,
            batch,
            parts: 1,
            most: None,
            seed: 0,
            budget: None,
            scale: None,
            held_out: None,
            checkpoints: None,
            every: 0,
            resume: false,
            world: World::alone(),
            sharding: None,
        }
    }

    /// The order of the rows is that of a seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Fit {
        Fit { seed, ..self }
    }

    /// A step stays under `budget` bytes, with all that the data hold beside it, or training is refused before it starts; with
    /// [`Budget::Least`] it takes the least that is possible.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Fit {
        Fit { budget: Some(budget), ..self }
    }

    /// Ends after `steps` steps, whatever the number of epochs.
    #[must_use]
    pub fn at_most(self, steps: u64) -> Fit {
        Fit { most: Some(steps), ..self }
    }

    /// A step is made from the mean gradient of `batches` batches, in the memory of one and of the sums: as large a batch as one likes, also where an op mixes
    /// its rows. (Where none does, a [`budget`](Fit::budget) cuts a large batch by itself.) What does not fill a step is left out. Gradients
    /// that are rows of a table stay rows, so the update is that of the whole batch.
    #[must_use]
    pub fn accumulate(self, batches: usize) -> Fit {
        Fit { parts: batches.max(1), ..self }
    }

    /// Gradients are taken of the loss times a factor, for 16-bit floats that would lose them.
    #[must_use]
    pub fn loss_scale(self, scale: LossScale) -> Fit {
        Fit { scale: Some(scale), ..self }
    }

    /// The loss on these is computed after every epoch, for callbacks and to tell which checkpoint is best.
    #[must_use]
    pub fn held_out(self, data: &Dataset<(Tensor, Tensor)>) -> Fit {
        Fit { held_out: Some(data.clone()), ..self }
    }

    /// Saves a checkpoint every `every` steps (0: after every epoch), and at the end.
    #[must_use]
    pub fn checkpoints(self, checkpoints: Checkpoints, every: u64) -> Fit {
        Fit { checkpoints: Some(checkpoints), every, ..self }
    }

    /// Goes on from the last checkpoint, to the same bits as if it had not stopped.
    #[must_use]
    pub fn resume(self) -> Fit {
        Fit { resume: true, ..self }
    }

    /// Trains on all ranks of a world: data parallel. Every rank calls this with the same model, optimizer, data and options; each learns from its own batches, of `batch` rows,
    /// and a step is made from the mean gradient of all of them. After every step all ranks have the same parameters.
    ///
    /// `n` ranks give the bits of one process that [accumulates](Fit::accumulate) `n` batches, random numbers included, and go on from its checkpoints. Before the first
    /// step ranks compare what they are about to do. All ranks save checkpoints together. An error on one rank ends all.
    ///
    /// ```
    /// use tonnage::train::Fit;
    /// use tonnage::world;
    /// let fit = Fit::new(20, 32).across(&world::join()?); // `mpirun -n 4` makes steps of 128 rows
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn across(self, world: &World) -> Fit {
        Fit { world: world.clone(), ..self }
    }

    /// Ranks hold that much in blocks, whatever the budget; without this a [budget](Fit::budget) chooses, and without a budget each rank holds all. Bits are the same
    /// either way. Where ranks hold blocks, reading a variable is an op that all of them run.
    #[must_use]
    pub fn shard(self, sharding: Sharding) -> Fit {
        Fit { sharding: Some(sharding), ..self }
    }

    /// What a step will take, with all that it holds: known before anything runs. Where a step is made of several batches, that is the plan of the
    /// one that takes most: the last, which makes the update and holds what the others left, or one before it with what waits beside it.
    ///
    /// # Errors
    /// Where the budget is too small: with the least that would do.
    #[track_caller]
    pub fn predict<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &impl Feed,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Arc<Plan>> {
        let step = self.step(model, optimizer, &loss, Source::here());
        self.largest(&step, data).map(|(_, _, plan)| plan)
    }

    /// What each [sharding](Sharding) takes of a rank: memory, traffic and time, also for [ranks that are not there](World::on_paper). Within the
    /// budget, where there is one. Runs nothing.
    ///
    /// ```
    /// use tonnage::data::Dataset;
    /// use tonnage::nn::Dense;
    /// use tonnage::optim::Optimizer;
    /// use tonnage::train::{Fit, Sharding};
    /// use tonnage::world::World;
    /// use tonnage::{Elementwise, Tensor, zeros};
    /// let data = Dataset::of((zeros([64, 256])?, zeros([64, 256])?))?;
    /// let loss = |said: &Tensor, truth: &Tensor| said.squared_difference(truth);
    /// let fit = Fit::new(1, 8).across(&World::on_paper(8));
    /// let plans = fit.shardings(&Dense::new(256), &Optimizer::adam(0.01), &data, loss)?;
    /// assert_eq!(plans.len(), 4);
    /// assert!(plans.iter().all(|plan| plan.fits));
    /// assert!(plans[3].sharding == Sharding::Weights && plans[3].peak < plans[0].peak);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the data do not fill a step, or the model cannot be traced.
    #[track_caller]
    pub fn shardings<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &impl Feed,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Vec<ShardedPlan>> {
        let step = self.step(model, optimizer, &loss, Source::here());
        self.sharded_plans(&step, data)
    }

    /// What less memory than that would cost: see [`Function::prices`].
    #[track_caller]
    pub fn prices<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &impl Feed,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Vec<tonnage_plan::Price>> {
        let step = self.step(model, optimizer, &loss, Source::here());
        let (program, all, _) = self.largest(&step, data)?;
        program.prices(&all)
    }

    /// Trains on a [`Dataset`], or on a [`Pipeline`](crate::data::Pipeline) of batches. `loss` gives the loss of each row from what the model made of it and what it should be; `after` is told
    /// how it goes after every step, and may end it.
    ///
    /// # Errors
    /// Where the budget is too small (nothing has run then), a checkpoint cannot be saved or is of another model, or the loss
    /// is not finite: the error says at which step, and which tensor was the first that was not; parameters are as they were before that step, and
    /// the last good checkpoint is kept.
    #[track_caller]
    pub fn run<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &impl Feed,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
        after: impl FnMut(&Progress) -> Go,
    ) -> Result<History> {
        self.run_with(model, optimizer, data, loss, after)
    }

    /// [`Fit::run`] with callbacks, which are told of every epoch too.
    ///
    /// # Errors
    /// As [`Fit::run`] has them, and what a callback says.
    #[track_caller]
    pub fn run_with<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &impl Feed,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
        mut after: impl Callback,
    ) -> Result<History> {
        run::run(self, &self.step(model, optimizer, &loss, Source::here()), data, &mut after)
    }

    /// The steps that there will be, where that is known before: a pipeline does not know how long it is.
    pub fn steps(&self, data: &impl Feed) -> Option<u64> {
        self.steps_of(data)
    }

    pub(super) fn steps_of(&self, data: &dyn Feed) -> Option<u64> {
        let all = self.epochs.saturating_mul(self.steps_of_epoch(data)?);
        Some(self.most.map_or(all, |most| most.min(all)))
    }

    /// The steps of one time through the data.
    pub(super) fn steps_of_epoch(&self, data: &dyn Feed) -> Option<u64> {
        Some(data.batch_count(self.batch)? / self.batches_of_step())
    }

    /// Batches that one step is made of, on all ranks.
    pub(super) fn batches_of_step(&self) -> u64 {
        (self.parts * self.world.size()) as u64
    }

    /// The batches that this rank learns from.
    pub(super) fn share(&self) -> Share {
        let (rank, ranks) = (self.world.rank() as u64, self.world.size() as u64);
        Share { rank, ranks, batches: self.parts as u64 }
    }

    /// What a step may take, where that was said.
    pub(super) fn asked_budget(&self) -> Option<Budget> {
        self.budget
    }

    pub(super) fn step<'a, M, L>(
        &'a self,
        model: &'a M,
        optimizer: &'a Optimizer,
        loss: &'a L,
        source: Source,
    ) -> TrainStep<'a, M, L> {
        let sums = GradientSums::new(self.parts, self.world.clone(), source);
        let (scale, parts) = (self.scale.as_ref(), self.parts);
        let shards = Shards::new(self.world.clone());
        TrainStep { model, optimizer, loss, scale, parts, source, sums, shards }
    }

    /// A function within the budget, less what others hold.
    pub(super) fn limited<A: Tree, R: Tree, F: Fn(A) -> Result<R>>(
        &self,
        f: Function<A, R, F>,
        beside: Bytes,
    ) -> Result<Function<A, R, F>> {
        match self.budget {
            Some(budget) => Ok(f.budget(budget)?.beside(beside)),
            None => Ok(f),
        }
    }

    /// A batch to plan with, and what the data hold beside it.
    pub(super) fn look(&self, data: &dyn Feed) -> Result<(Batch, Bytes)> {
        if self.batch == 0 || data.batch_count(self.batch) == Some(0) {
            return Err(self.too_few(data));
        }
        let (first, holds) = data.look(self.batch)?;
        Ok((first.ok_or_else(|| self.too_few(data))?, total(&holds)))
    }

    /// Refuses data that do not fill a step.
    pub(super) fn check_steps(&self, data: &dyn Feed) -> Result<()> {
        match self.batch == 0 || self.steps_of_epoch(data) == Some(0) {
            true => Err(self.too_few(data)),
            false => Ok(()),
        }
    }

    fn too_few(&self, data: &dyn Feed) -> Error {
        let batches = match self.batches_of_step() {
            1 => format!("batches of {}", self.batch),
            parts => format!("{parts} batches of {}", self.batch),
        };
        let what = match data.batch_count(1) {
            Some(rows) => format!("{batches} of {rows} rows"),
            None => format!("{batches} of a pipeline that gives nothing"),
        };
        bad_argument("fit", what, "use batches of at least 1 and at most all rows")
    }
}
