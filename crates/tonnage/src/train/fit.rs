//! The loop: a planned step for every batch.

use std::time::Instant;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, DType, Result, Source};

use super::checkpoint::{Checkpoints, Position};
use crate::data::Dataset;
use crate::function::{Function, function};
use crate::memory;
use crate::nn::{Layer, Mode, Parameters};
use crate::ops::Elementwise;
use crate::optim::Optimizer;
use crate::random::RandomKey;
use crate::tape::GradientTape;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// What is told after every step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Where training is.
    pub position: Position,
    /// Steps that there will be in all.
    pub steps: u64,
    /// This step's loss.
    pub loss: f64,
    /// Rows learned from in a second, on average.
    pub rows_per_second: f64,
    /// Held now, by everyone.
    pub held: Bytes,
    /// The most that a step was seen to take.
    pub measured: Bytes,
    /// What its plan said that it would take.
    pub predicted: Bytes,
}

/// What becomes of training after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// It goes on.
    On,
    /// It ends here; a checkpoint is saved.
    Stop,
}

/// What training came to.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The mean loss of each time through the data.
    pub losses: Vec<f64>,
    /// Where it ended.
    pub position: Position,
    /// What the plan of a step said that it would take.
    pub predicted: Bytes,
    /// The most that a step was seen to take.
    pub measured: Bytes,
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
    epochs: u64,
    batch: usize,
    seed: u64,
    budget: Option<Bytes>,
    checkpoints: Option<Checkpoints>,
    every: u64,
    resume: bool,
}

impl Fit {
    /// So many times through the data, in batches of so many rows. A last batch that is smaller is left out, so that all steps have
    /// one plan.
    pub fn new(epochs: u64, batch: usize) -> Fit {
        let (seed, budget, checkpoints, every, resume) = (0, None, None, 0, false);
        Fit { epochs, batch, seed, budget, checkpoints, every, resume }
    }

    /// The order of the rows is that of a seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Fit {
        Fit { seed, ..self }
    }

    /// A step stays under so many bytes, or training is refused before it starts.
    #[must_use]
    pub fn budget(self, budget: Bytes) -> Fit {
        Fit { budget: Some(budget), ..self }
    }

    /// Saves a checkpoint after every so many steps (0: after every time through the data), and at the end.
    #[must_use]
    pub fn checkpoints(self, checkpoints: Checkpoints, every: u64) -> Fit {
        Fit { checkpoints: Some(checkpoints), every, ..self }
    }

    /// Goes on from the last checkpoint, to the same bits as if it had not stopped.
    #[must_use]
    pub fn resume(self) -> Fit {
        Fit { resume: true, ..self }
    }

    /// What a step will take, with all that it holds: known before anything runs.
    ///
    /// # Errors
    /// Where the budget is too small: with the least that would do.
    #[track_caller]
    pub fn predict<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &Dataset<(Tensor, Tensor)>,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<std::sync::Arc<tonnage_plan::Plan>> {
        let source = Source::here();
        let step = self.limited(|batch| learn(model, optimizer, &loss, batch, source))?;
        step.plan(&self.first_batch(data)?)
    }

    /// What less memory than that would cost: see [`Function::prices`].
    #[track_caller]
    pub fn prices<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &Dataset<(Tensor, Tensor)>,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Vec<tonnage_plan::Price>> {
        let source = Source::here();
        let step = self.limited(|batch| learn(model, optimizer, &loss, batch, source))?;
        step.prices(&self.first_batch(data)?)
    }

    /// Trains. `loss` gives the loss of each row from what the model made of it and what it should be; `after` is told how it
    /// goes after every step, and may end it.
    ///
    /// # Errors
    /// Where the budget is too small (nothing has run then), a checkpoint cannot be saved or is of another model, or the loss
    /// is not finite: the error says at which step, and the last good checkpoint is kept.
    #[track_caller]
    pub fn run<M: Layer>(
        &self,
        model: &M,
        optimizer: &Optimizer,
        data: &Dataset<(Tensor, Tensor)>,
        loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
        mut after: impl FnMut(&Progress) -> Go,
    ) -> Result<History> {
        let source = Source::here();
        let step = self.limited(|batch| learn(model, optimizer, &loss, batch, source))?;
        let predicted = step.plan(&self.first_batch(data)?)?.peak();
        // The plan has built the model: everything that a checkpoint holds is there.
        let named = named(model, optimizer);
        let mut position = Position { step: 0, epoch: 0, batch: 0 };
        if let (true, Some(checkpoints)) = (self.resume, &self.checkpoints) {
            position = checkpoints.restore(&named)?.unwrap_or(position);
        }
        let steps = self.steps(data);
        let mut history = History {
            losses: Vec::new(),
            position,
            predicted,
            measured: Bytes::ZERO,
            seconds: 0.0,
        };
        let (mut rows, mut saved) = (0usize, position.step);
        'training: while position.epoch < self.epochs {
            let key =
                RandomKey::new(self.seed ^ position.epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let batches = data.batches(self.batch).whole().shuffled(key)?;
            let (mut sum, mut count) = (0.0, 0u32);
            for batch in batches.after(position.batch as usize) {
                let start = Instant::now();
                let (made, seen) = step.call_measured(batch?)?;
                let loss: f64 = made.cast(DType::F64)?.scalar()?;
                history.seconds += start.elapsed().as_secs_f64();
                if !loss.is_finite() {
                    return Err(not_finite(loss, position.step + 1, &named));
                }
                rows += self.batch;
                (sum, count) = (sum + loss, count + 1);
                position.step += 1;
                position.batch += 1;
                history.position = position;
                history.measured = history.measured.max(seen.map_or(Bytes::ZERO, |m| m.used));
                let told = Progress {
                    position,
                    steps,
                    loss,
                    rows_per_second: rows as f64 / history.seconds,
                    held: memory::info("cpu:0")?.in_use,
                    measured: history.measured,
                    predicted,
                };
                let go = after(&told);
                if let Some(checkpoints) = &self.checkpoints
                    && self.every > 0
                    && position.step.is_multiple_of(self.every)
                {
                    checkpoints.save(&named, position)?;
                    saved = position.step;
                }
                if go == Go::Stop {
                    break 'training;
                }
            }
            history.losses.push(sum / f64::from(count.max(1)));
            position = Position { epoch: position.epoch + 1, batch: 0, ..position };
            history.position = position;
            if let (Some(checkpoints), 0) = (&self.checkpoints, self.every) {
                checkpoints.save(&named, position)?;
                saved = position.step;
            }
        }
        if let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| saved != position.step) {
            checkpoints.save(&named, history.position)?;
        }
        Ok(history)
    }

    /// The steps of all times through the data.
    pub fn steps(&self, data: &Dataset<(Tensor, Tensor)>) -> u64 {
        self.epochs.saturating_mul((data.len() / self.batch.max(1)) as u64)
    }

    /// A step, within the budget.
    fn limited<F: Fn((Tensor, Tensor)) -> Result<Tensor>>(&self, step: F) -> Result<Step<F>> {
        match self.budget {
            Some(budget) => function(step).budget(budget),
            None => Ok(function(step)),
        }
    }

    fn first_batch(&self, data: &Dataset<(Tensor, Tensor)>) -> Result<(Tensor, Tensor)> {
        data.batches(self.batch).whole().next().unwrap_or_else(|| {
            let what = format!("batches of {} of {} rows", self.batch, data.len());
            Err(bad_argument("fit", what, "use batches of at least 1 and at most all rows"))
        })
    }
}

/// A step of training.
type Step<F> = Function<(Tensor, Tensor), Tensor, F>;

/// One step: forward, backward, update.
fn learn<M: Layer>(
    model: &M,
    optimizer: &Optimizer,
    loss: &impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    (x, y): (Tensor, Tensor),
    source: Source,
) -> Result<Tensor> {
    let mut tape = GradientTape::new();
    let losses = loss(&model.forward(&x, Mode::Training)?, &y)?;
    source.stand_for(|| {
        let loss = losses.mean_all()?;
        let variables = model.trainable();
        let gradients = tape.gradient(&loss, &variables)?;
        optimizer.apply(&variables, &gradients)?;
        Ok(loss)
    })
}

/// Everything that training goes on from, by names that do not depend on where it was made.
fn named(model: &impl Parameters, optimizer: &Optimizer) -> Vec<(String, Variable)> {
    let of_model =
        model.parameters().into_iter().map(|p| (format!("model.{}", p.path), p.variable));
    let of_optimizer = optimizer.variables().into_iter().enumerate();
    let of_optimizer = of_optimizer.map(|(i, v)| (format!("optimizer.{i}.{}", v.name()), v));
    of_model.chain(of_optimizer).collect()
}

/// The error for a loss that is no number, with the first parameter that is none either.
fn not_finite(loss: f64, step: u64, named: &[(String, Variable)]) -> tonnage_core::Error {
    let bad = |variable: &Variable| -> Result<bool> {
        let value = variable.read()?;
        Ok(value.dtype().is_float()
            && !value.is_finite()?.all(crate::Axes::ALL)?.scalar::<bool>()?)
    };
    let first = named.iter().find(|(_, variable)| bad(variable).unwrap_or(false));
    let which = match first {
        Some((name, _)) => format!("`{name}` is not finite any more"),
        None => "all parameters are still finite".to_string(),
    };
    let what = format!("the loss of step {step} is {loss}; {which}");
    bad_argument("fit", what, "use a lower rate or clip gradients; the last checkpoint is kept")
}

/// What [`evaluate`] finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The mean loss.
    pub loss: f64,
    /// The share of rows whose largest output is the label's.
    pub accuracy: f64,
}

/// How well a model of classes does on data that it may never have seen.
#[track_caller]
pub fn evaluate<M: Layer>(
    model: &M,
    data: &Dataset<(Tensor, Tensor)>,
    batch: usize,
) -> Result<Evaluation> {
    let f = function(|(x, y): (Tensor, Tensor)| {
        let logits = model.forward(&x, Mode::Inference)?;
        let right = logits.argmax(-1)?.equal((&y).cast(DType::I64)?)?;
        let right = right.cast(DType::F64)?.sum_all()?;
        let loss = logits.sparse_cross_entropy(&y)?.cast(DType::F64)?.sum_all()?;
        Ok((loss, right))
    });
    let (mut loss, mut right) = (0.0, 0.0);
    for rows in data.batches(batch) {
        let (batch_loss, batch_right) = f.call(rows?)?;
        loss += batch_loss.scalar::<f64>()?;
        right += batch_right.scalar::<f64>()?;
    }
    let rows = data.len().max(1) as f64;
    Ok(Evaluation { loss: loss / rows, accuracy: right / rows })
}
