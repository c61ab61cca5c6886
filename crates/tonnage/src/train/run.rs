//! The loop: planned steps, one after another.

use std::time::Instant;

use tonnage_core::{Bytes, DType, Result, TensorType};
use tonnage_runtime::random;

use super::callback::{Callback, Epoch, Go, Progress};
use super::checkpoint::Position;
use super::evaluate::{judge, mean_of};
use super::fit::{Fit, History};
use super::step::{Batch, TrainStep};
use super::sums::{Pieces, held, owned};
use crate::data::Feed;
use crate::function::function;
use crate::memory;
use crate::nn::Layer;
use crate::ops::Elementwise;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// Trains as `fit` says.
pub(super) fn run<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
    fit: &Fit,
    step: &TrainStep<'_, M, L>,
    data: &dyn Feed,
    after: &mut impl Callback,
) -> Result<History> {
    if let Some(checkpoints) = &fit.checkpoints {
        checkpoints.lock()?;
    }
    let (first, of_data) = fit.look(data)?;
    let mut part = function(|batch: Batch| step.part(batch));
    if fit.parts > 1 {
        // Tracing it tells how many rows wait for the last part.
        part.concrete(&first)?;
        part = fit.limited(part, of_data + step.sums.waiting()?)?.settled();
    }
    let last = fit.limited(function(|all: (Batch, Vec<Pieces>)| step.last(all)), of_data)?;
    let judge = judge(step.model, step.loss);
    // Refused here where the budget is too small, and nothing has run. The plan has built the model: everything that a checkpoint
    // holds is there.
    let mut predicted = last.plan(&(first.share(), step.sums.foreseen(fit.parts - 1)))?.peak();
    if fit.parts > 1 {
        predicted = predicted.max(part.plan(&first)?.peak() + step.sums.waiting()?);
    }
    let named = step.named();
    let mut position = Position { step: 0, epoch: 0, batch: 0 };
    // Where the last checkpoint stands: one that training has not gone on from is not saved again.
    let mut saved = None;
    if let (true, Some(checkpoints)) = (fit.resume, &fit.checkpoints) {
        saved = checkpoints.restore(&named)?;
        position = saved.unwrap_or(position);
    }
    if fit.parts > 1 {
        step.write_out()?;
    }
    let types = |batch: &Batch| -> [TensorType; 2] { [batch.0.ty(), batch.1.ty()] };
    let usual = types(&first);
    drop(first);
    let steps = fit.steps_of(data);
    let mut history = History {
        losses: Vec::new(),
        position,
        steps: 0,
        predicted,
        measured: Bytes::ZERO,
        data: of_data,
        seconds: 0.0,
    };
    // One batch, or the parts of a step: the mean loss; none where there are too few left.
    let learn = |batches: &mut dyn Iterator<Item = Result<Batch>>,
                 number: u64,
                 history: &mut History|
     -> Result<Option<f64>> {
        let (mut sum, mut given, mut is_usual) = (0.0, Vec::new(), true);
        for i in 1..=fit.parts {
            let Some(batch) = batches.next().transpose()? else {
                // What they left would be part of the next step.
                step.sums.clear()?;
                return Ok(None);
            };
            let waiting = held(&given);
            // Batches of other lengths have plans of their own, which are made before they run.
            is_usual &= types(&batch) == usual;
            if !is_usual {
                let peak = match i < fit.parts {
                    true => part.plan(&batch)?.peak() + waiting,
                    false => last.plan(&(batch.share(), given.share()))?.peak(),
                };
                history.predicted = history.predicted.max(peak);
            }
            let retained = batch.share();
            let (loss, seen) = if i < fit.parts {
                let called = part.call_measured(batch);
                let ((loss, pieces), seen) =
                    called.map_err(|e| step.explained(e, number, retained))?;
                given.push(owned(pieces, step.source)?);
                (loss, seen.map_or(Bytes::ZERO, |m| m.used + waiting))
            } else {
                // Held to the end of the call, as it was planned.
                let waiting = given.share();
                let called = last.call_measured((batch, std::mem::take(&mut given)));
                let (loss, seen) = called.map_err(|e| step.explained(e, number, retained))?;
                drop(waiting);
                (loss, seen.map_or(Bytes::ZERO, |m| m.used))
            };
            history.measured = history.measured.max(seen);
            sum += loss.cast(DType::F64)?.scalar::<f64>()?;
        }
        Ok(Some(sum / fit.parts as f64))
    };
    let mut rows = 0usize;
    let is_last = |position: &Position| {
        fit.most.is_some_and(|most| position.step >= most)
            || steps.is_some_and(|steps| position.step >= steps)
    };
    let mut go = if is_last(&position) { Go::Stop } else { Go::On };
    while position.epoch < fit.epochs && go == Go::On {
        // Batches that were learned from already may be made again; what they draw is no part of training.
        let state = random::state();
        let mut batches = data.epoch(fit.batch, fit.seed, position.epoch, position.batch)?;
        random::set_state(state);
        let (mut sum, mut count) = (0.0, 0u32);
        let whole = fit.steps_of_epoch(data).map(|steps| steps * fit.parts as u64);
        let is_over = |position: &Position| whole.is_some_and(|whole| position.batch >= whole);
        let mut over = is_over(&position);
        while !over && go == Go::On {
            let start = Instant::now();
            let made = learn(&mut batches, position.step + 1, &mut history)?;
            history.seconds += start.elapsed().as_secs_f64();
            let Some(loss) = made else {
                over = true;
                break;
            };
            rows += fit.batch * fit.parts;
            (sum, count) = (sum + loss, count + 1);
            position.step += 1;
            history.steps += 1;
            position.batch += fit.parts as u64;
            history.position = position;
            let told = Progress {
                position,
                steps,
                loss,
                rows_per_second: rows as f64 / history.seconds,
                held: memory::info("cpu:0")?.in_use,
                measured: history.measured,
                predicted: history.predicted,
            };
            go = after.step(&told)?;
            if is_last(&position) {
                go = Go::Stop;
            }
            if let Some(checkpoints) = &fit.checkpoints
                && fit.every > 0
                && position.step.is_multiple_of(fit.every)
            {
                checkpoints.save(&named, position)?;
                saved = Some(position);
            }
            over = is_over(&position);
        }
        drop(batches);
        if !over {
            break;
        }
        let loss = sum / f64::from(count);
        if count > 0 {
            history.losses.push(loss);
        }
        position = Position { epoch: position.epoch + 1, batch: 0, ..position };
        history.position = position;
        let held_out = match &fit.held_out {
            Some(data) => Some(mean_of(&judge, data, fit.batch)?),
            None => None,
        };
        let epoch = Epoch { position, loss, held_out };
        if after.epoch(&epoch)? == Go::Stop {
            go = Go::Stop;
        }
        if let Some(checkpoints) = &fit.checkpoints
            && (fit.every == 0 || checkpoints.keeps_best())
        {
            checkpoints.save_scored(&named, position, Some(epoch.score()))?;
            saved = Some(position);
        }
    }
    if let Some(checkpoints) = fit.checkpoints.as_ref().filter(|_| saved != Some(history.position))
    {
        checkpoints.save(&named, history.position)?;
    }
    Ok(history)
}
