//! The loop: planned steps, one after another, in epochs; what is told of them, evaluated and saved between them.

use std::time::Instant;

use tonnage_core::{Bytes, Result};
use tonnage_runtime::random;

use super::agree;
use super::callback::{Callback, Epoch, Go, Progress};
use super::checkpoint::{Checkpoints, Position};
use super::choose::Withdraw;
use super::evaluate::{Judge, judge, mean_of};
use super::fit::{Fit, History};
use super::learn::StepPrograms;
use super::step::{Batch, TrainStep};
use crate::data::Feed;
use crate::memory;
use crate::nn::Layer;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::world::engine_memory;

/// Trains as `fit` says.
pub(super) fn run<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
    fit: &Fit,
    step: &TrainStep<'_, M, L>,
    data: &dyn Feed,
    after: &mut impl Callback,
) -> Result<History> {
    if fit.world.size() > 1 {
        // Ranks that are there on paper alone say so here.
        fit.world.engine().barrier("fit")?;
    }
    let _withdraw = Withdraw(step);
    let run =
        agree::on_errors(&fit.world, "cannot start", TrainRun::begin(fit, step, data, after))?;
    let (mut run, plan) = run;
    agree::on_errors(&fit.world, "cannot go on", run.restore(step))?;
    agree::on_start(fit, &plan, run.history.position)?;
    let ended = run.finish_run();
    match ended {
        // The others wait for this rank.
        Err(error) if fit.world.size() > 1 => fit.world.engine().abort(&error.to_string()),
        ended => ended,
    }
}

/// Training that is under way.
struct TrainRun<'a, M, L, C> {
    fit: &'a Fit,
    data: &'a dyn Feed,
    programs: StepPrograms<'a, M, L>,
    judge: Judge<'a>,
    after: &'a mut C,
    /// Everything that a checkpoint holds.
    named: Vec<(String, Variable)>,
    /// Those of all ranks.
    checkpoints: Option<Checkpoints>,
    /// Where the last checkpoint stands: one that training has not gone on from is not saved again.
    saved: Option<Position>,
    /// Steps that there will be in all, where that is known before.
    steps: Option<u64>,
    /// Rows that were learned from.
    rows: usize,
    /// What it came to so far, and where it is.
    history: History,
}

impl<'a, M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>, C: Callback> TrainRun<'a, M, L, C> {
    /// Plans the steps; the plan as text, for ranks to compare.
    fn begin(
        fit: &'a Fit,
        step: &'a TrainStep<'_, M, L>,
        data: &'a dyn Feed,
        after: &'a mut C,
    ) -> Result<(TrainRun<'a, M, L, C>, String)> {
        let checkpoints = fit.checkpoints.as_ref().map(|all| all.clone().across(&fit.world));
        if let Some(checkpoints) = &checkpoints {
            checkpoints.lock()?;
        }
        fit.check_steps(data)?;
        let (first, of_data) = fit.look(data)?;
        // The plan builds the model: everything that a checkpoint holds is there after it.
        let (programs, figures) = fit.quickest(step, &first, of_data)?;
        let judge = judge(step.model, step.loss);
        let plan = match fit.world.size() {
            1 => String::new(),
            _ => programs.text(&first)?,
        };
        drop(first);
        let history = History {
            losses: Vec::new(),
            position: Position { step: 0, epoch: 0, batch: 0 },
            steps: 0,
            predicted: figures.peak,
            measured: Bytes::ZERO,
            sharding: step.shards.now(),
            predicted_sent: figures.sent,
            sent: Bytes::ZERO,
            engine: engine_memory(),
            data: of_data,
            seconds: 0.0,
        };
        let (named, steps) = (step.named(), fit.steps_of(data));
        let run = TrainRun {
            fit,
            data,
            programs,
            judge,
            after,
            named,
            checkpoints,
            saved: None,
            steps,
            rows: 0,
            history,
        };
        Ok((run, plan))
    }

    /// Keeps the blocks of this rank alone, where ranks hold some, and goes on from the last checkpoint where that was asked for.
    fn restore(&mut self, step: &TrainStep<'_, M, L>) -> Result<()> {
        step.cut()?;
        if let (true, Some(checkpoints)) = (self.fit.resume, &self.checkpoints) {
            self.saved = checkpoints.restore(&self.named)?;
        }
        self.history.position = self.saved.unwrap_or(self.history.position);
        match self.fit.parts > 1 {
            true => step.write_out(),
            false => Ok(()),
        }
    }

    /// All steps that are left.
    fn finish_run(mut self) -> Result<History> {
        let mut go = self.go();
        while self.history.position.epoch < self.fit.epochs && go == Go::On {
            go = self.epoch()?;
        }
        self.end()
    }

    /// Saves a checkpoint where training is, at a score where there is one, on all ranks at once. Where one of them cannot, all end.
    fn save(&mut self, checkpoints: &Checkpoints, score: Option<f64>) -> Result<()> {
        let position = self.history.position;
        let saved = checkpoints.try_save(&self.named, position, score);
        saved.map_err(|failed| failed.end(&self.fit.world))?;
        self.saved = Some(position);
        Ok(())
    }

    /// What becomes of training on all ranks: it ends where one of them says so.
    fn agreed(&self, own: Go) -> Go {
        if agree::all(&self.fit.world, own == Go::On) { Go::On } else { Go::Stop }
    }

    /// Whether there is a step to make.
    fn go(&self) -> Go {
        let step = self.history.position.step;
        let is_over = |all: Option<u64>| all.is_some_and(|all| step >= all);
        if is_over(self.fit.most) || is_over(self.steps) { Go::Stop } else { Go::On }
    }

    /// An epoch, or what is left of one that was stopped in between.
    fn epoch(&mut self) -> Result<Go> {
        let mut batches = self.batches()?;
        let whole =
            self.fit.steps_of_epoch(self.data).map(|steps| steps * self.fit.batches_of_step());
        let is_over = |position: &Position| whole.is_some_and(|whole| position.batch >= whole);
        let (mut sum, mut count) = (0.0, 0u32);
        let (mut over, mut go) = (is_over(&self.history.position), Go::On);
        while !over && go == Go::On {
            match self.step(&mut batches)? {
                Some((loss, told)) => {
                    (sum, count) = (sum + loss, count + 1);
                    (over, go) = (is_over(&self.history.position), told);
                }
                None => over = true,
            }
        }
        drop(batches);
        match over {
            true => Ok(go.and(self.end_epoch(sum, count)?)),
            false => Ok(Go::Stop),
        }
    }

    /// The batches of this epoch that were not learned from yet.
    fn batches(&self) -> Result<Box<dyn Iterator<Item = Result<Batch>> + 'a>> {
        // Batches that were learned from already may be made again; what they draw is no part of training.
        let state = random::state();
        let (fit, position) = (self.fit, self.history.position);
        let (seed, epoch, after) = (fit.seed, position.epoch, position.batch);
        let batches = self.data.epoch_of(fit.share(), fit.batch, seed, epoch, after)?;
        random::set_state(state);
        Ok(batches)
    }

    /// One step, with all that follows it: its loss, and what becomes of training; none where there are too few batches
    /// left.
    fn step(
        &mut self,
        batches: &mut dyn Iterator<Item = Result<Batch>>,
    ) -> Result<Option<(f64, Go)>> {
        let start = Instant::now();
        let number = self.history.position.step + 1;
        let made = self.programs.learn(batches, number, &mut self.history)?;
        self.history.seconds += start.elapsed().as_secs_f64();
        let Some(loss) = made else { return Ok(None) };
        self.count_step();
        let progress = self.progress(loss)?;
        let told = self.after.step(&progress)?;
        let told = self.agreed(told);
        let go = told.and(self.go());
        self.save_after_step()?;
        Ok(Some((loss, go)))
    }

    /// One more step was made.
    fn count_step(&mut self) {
        let batches = self.fit.batches_of_step();
        self.rows += self.fit.batch * batches as usize;
        self.history.steps += 1;
        self.history.position.step += 1;
        self.history.position.batch += batches;
    }

    /// What is told after a step.
    fn progress(&self, loss: f64) -> Result<Progress> {
        Ok(Progress {
            position: self.history.position,
            steps: self.steps,
            loss,
            rows_per_second: self.rows as f64 / self.history.seconds,
            held: memory::info("cpu:0")?.in_use,
            measured: self.history.measured,
            predicted: self.history.predicted,
        })
    }

    /// The end of an epoch of `count` steps: its mean loss, evaluation, and all who follow it are told.
    fn end_epoch(&mut self, sum: f64, count: u32) -> Result<Go> {
        let loss = sum / f64::from(count);
        if count > 0 {
            self.history.losses.push(loss);
        }
        let before = self.history.position;
        let position = Position { epoch: before.epoch + 1, batch: 0, ..before };
        self.history.position = position;
        let epoch = Epoch { position, loss, held_out: self.evaluate()? };
        let go = self.after.epoch(&epoch)?;
        let go = self.agreed(go);
        self.save_after_epoch(&epoch)?;
        Ok(go)
    }

    /// The mean loss on what is held out, where something is.
    fn evaluate(&self) -> Result<Option<f64>> {
        match &self.fit.held_out {
            Some(data) => Ok(Some(mean_of(&self.judge, data, self.fit.batch)?)),
            None => Ok(None),
        }
    }

    /// Saves a checkpoint where one is due after so many steps.
    fn save_after_step(&mut self) -> Result<()> {
        let (every, position) = (self.fit.every, self.history.position);
        match self.checkpoints.clone() {
            Some(checkpoints) if every > 0 && position.step.is_multiple_of(every) => {
                self.save(&checkpoints, None)
            }
            _ => Ok(()),
        }
    }

    /// Saves a checkpoint where one is due after every epoch.
    fn save_after_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        match self.checkpoints.clone() {
            Some(checkpoints) if self.fit.every == 0 || checkpoints.keeps_best() => {
                self.save(&checkpoints, Some(epoch.score()))
            }
            _ => Ok(()),
        }
    }

    /// Saves where training ended, unless that was saved already.
    fn end(mut self) -> Result<History> {
        let position = self.history.position;
        if let Some(checkpoints) = self.checkpoints.clone()
            && self.saved != Some(position)
        {
            self.save(&checkpoints, None)?;
        }
        Ok(self.history)
    }
}
