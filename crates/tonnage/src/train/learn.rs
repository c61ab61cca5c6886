//! One step by planned programs: the plans that it is made with, the batches that it learns from, and what that took.

use tonnage_core::{Bytes, DType, Result, TensorType};
use tonnage_runtime::random;

use super::agree;
use super::fit::{Fit, History};
use super::step::{Batch, TrainStep};
use super::sums::{Pieces, held, owned};
use crate::function::{Function, function};
use crate::nn::Layer;
use crate::ops::Elementwise;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// A closure that becomes a program.
type Closure<'s, A, R> = Box<dyn Fn(A) -> Result<R> + 's>;

/// The program of every batch of a step but the last.
type PartFunction<'s> = Function<Batch, (Tensor, Pieces), Closure<'s, Batch, (Tensor, Pieces)>>;

/// What the program of the last batch is called with: the batch, and what the parts before it gave.
type LastBatch = (Batch, Vec<Pieces>);

/// The program of the last batch of a step, or of its only one, and of the update.
type LastFunction<'s> = Function<LastBatch, Tensor, Closure<'s, LastBatch, Tensor>>;

/// What a step of one rank takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepFigures {
    pub peak: Bytes,
    /// Bytes that go to other ranks.
    pub sent: Bytes,
    pub seconds: f64,
}

/// The programs that steps are made with.
pub(super) struct StepPrograms<'s, M, L> {
    step: &'s TrainStep<'s, M, L>,
    part: PartFunction<'s>,
    last: LastFunction<'s>,
    /// Types of the batch that they were planned with first. Most are like it.
    usual: [TensorType; 2],
}

impl<'s, M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>> StepPrograms<'s, M, L> {
    /// Programs for batches like the first, within what `fit` allows beside `of_data` bytes of data.
    pub fn new(
        fit: &Fit,
        step: &'s TrainStep<'_, M, L>,
        first: &Batch,
        of_data: Bytes,
    ) -> Result<StepPrograms<'s, M, L>> {
        step.build(first)?;
        let part: Closure<'s, _, _> = Box::new(|batch| step.part(batch));
        let mut part = function(part);
        if step.parts > 1 {
            // Tracing it tells how many rows wait for the last part.
            part.concrete(first)?;
            part = fit.limited(part, of_data + step.sums.waiting()?)?.settled();
        }
        let last: Closure<'s, _, _> = Box::new(|all| step.last(all));
        let last = fit.limited(function(last), of_data)?;
        Ok(StepPrograms { step, part, last, usual: types(first) })
    }

    /// Traces a step of batches like the first, and plans nothing: then it is known which gradients are rows, and all state is there.
    pub fn trace(&self, first: &Batch) -> Result<()> {
        let all = (first.share(), self.step.sums.foreseen(self.step.parts - 1));
        self.last.concrete(&all).map(|_| ())
    }

    /// What a step of batches like the first takes: refused here where the budget is too small, and nothing has run.
    pub fn figures(&self, first: &Batch) -> Result<StepFigures> {
        let (sums, parts) = (&self.step.sums, self.step.parts);
        let machine = crate::calibrate::machine();
        let last = self.last.plan(&(first.share(), sums.foreseen(parts - 1)))?;
        let mut figures =
            StepFigures { peak: last.peak(), sent: last.sent(), seconds: last.seconds(&machine) };
        if parts > 1 {
            let (part, before) = (self.part.plan(first)?, parts - 1);
            figures.peak = figures.peak.max(part.peak() + sums.waiting()?);
            figures.sent += Bytes::new(part.sent().get().saturating_mul(before as u64));
            figures.seconds += part.seconds(&machine) * before as f64;
        }
        Ok(figures)
    }

    /// What the step of batches like the first is, as text: the same on all ranks of a job.
    pub fn text(&self, first: &Batch) -> Result<String> {
        let (sums, parts) = (&self.step.sums, self.step.parts);
        let mut text = self.last.plan(&(first.share(), sums.foreseen(parts - 1)))?.to_string();
        if parts > 1 {
            text += &self.part.plan(first)?.to_string();
        }
        Ok(text)
    }

    /// Step `number` of all ranks: the mean loss; none where there are too few batches left. A part draws the random numbers that it would draw in one process
    /// which goes through the parts of all ranks.
    pub fn learn(
        &self,
        batches: &mut dyn Iterator<Item = Result<Batch>>,
        number: u64,
        history: &mut History,
    ) -> Result<Option<f64>> {
        let (world, parts) = (&self.step.sums.world, self.step.parts as u64);
        let (seed, drawn) = random::state();
        random::set_state((seed, drawn + world.rank() as u64 * parts));
        let own = self.learn_own(batches, number, history)?;
        let all = world.size() as u64 * parts;
        if own.is_none() {
            // A step that was not made has drawn nothing.
            random::set_state((seed, drawn));
        } else if world.size() > 1 {
            random::set_state((seed, drawn + all));
        }
        Ok(own.map(|own| agree::sum(world, own) / all as f64))
    }

    /// The parts of this rank: the sum of their losses. The history is told what it takes.
    fn learn_own(
        &self,
        batches: &mut dyn Iterator<Item = Result<Batch>>,
        number: u64,
        history: &mut History,
    ) -> Result<Option<f64>> {
        let parts = self.step.parts;
        let (mut sum, mut given, mut is_usual) = (0.0, Vec::new(), true);
        for i in 1..=parts {
            let batch = batches.next().transpose()?;
            let is_there = agree::all(&self.step.sums.world, batch.is_some());
            let Some(batch) = batch.filter(|_| is_there) else {
                // What they left would be part of the next step.
                self.step.sums.clear()?;
                return Ok(None);
            };
            let is_last = i == parts;
            // Batches of other lengths have plans of their own, which are made before they run.
            is_usual &= types(&batch) == self.usual;
            if !is_usual {
                let peak = self.peak_of(&batch, &given, is_last)?;
                history.predicted = history.predicted.max(peak);
            }
            let before = self.step.shards.world.engine().sent();
            let (loss, seen) = match is_last {
                true => self.learn_last(batch, std::mem::take(&mut given), number)?,
                false => self.learn_part(batch, &mut given, number)?,
            };
            history.measured = history.measured.max(seen);
            history.sent += Bytes::new(self.step.shards.world.engine().sent() - before);
            sum += loss.cast(DType::F64)?.scalar::<f64>()?;
        }
        Ok(Some(sum))
    }

    /// What a batch will take, with what the parts before it gave.
    fn peak_of(&self, batch: &Batch, given: &Vec<Pieces>, is_last: bool) -> Result<Bytes> {
        match is_last {
            true => Ok(self.last.plan(&(batch.share(), given.share()))?.peak()),
            false => Ok(self.part.plan(batch)?.peak() + held(given)),
        }
    }

    /// A batch before the last: its loss, and what was seen to be taken. What it gives to the last is added to `given`.
    fn learn_part(
        &self,
        batch: Batch,
        given: &mut Vec<Pieces>,
        number: u64,
    ) -> Result<(Tensor, Bytes)> {
        let (waiting, retained) = (held(given), batch.share());
        let called = self.part.call_measured(batch);
        let ((loss, pieces), seen) =
            called.map_err(|e| self.step.explained(e, number, retained))?;
        given.push(owned(pieces, self.step.source)?);
        Ok((loss, seen.map_or(Bytes::ZERO, |m| m.used + waiting)))
    }

    /// The last batch and the update: its loss, and what was seen to be taken.
    fn learn_last(&self, batch: Batch, given: Vec<Pieces>, number: u64) -> Result<(Tensor, Bytes)> {
        // What was given is held to the end of the call, as it was planned.
        let (waiting, retained) = (given.share(), batch.share());
        let called = self.last.call_measured((batch, given));
        let (loss, seen) = called.map_err(|e| self.step.explained(e, number, retained))?;
        drop(waiting);
        Ok((loss, seen.map_or(Bytes::ZERO, |m| m.used)))
    }
}

/// What makes a batch need a plan of its own.
fn types(batch: &Batch) -> [TensorType; 2] {
    [batch.0.ty(), batch.1.ty()]
}
