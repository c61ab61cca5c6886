//! The loop: planned steps, one after another.

use std::time::Instant;

use tonnage_core::{Bytes, DType, Result};

use super::callback::{Callback, Epoch, Go, Progress};
use super::checkpoint::Position;
use super::evaluate::{judge, mean_of};
use super::fit::{Fit, History};
use super::step::{Batch, Step};
use crate::data::Dataset;
use crate::memory;
use crate::nn::Layer;
use crate::ops::Elementwise;
use crate::random::RandomKey;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// Trains as `fit` says.
pub(super) fn run<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
    fit: &Fit,
    step: &Step<'_, M, L>,
    data: &Dataset<Batch>,
    after: &mut impl Callback,
) -> Result<History> {
    let whole = fit.limited(|batch: Batch| step.whole(batch))?;
    let part = fit.limited(|batch: Batch| step.part(batch))?;
    let end = fit.limited(|(): ()| step.end())?;
    let judge = judge(step.model, step.loss);
    let first = fit.first_batch(data)?;
    let plan = || -> Result<Bytes> {
        match fit.parts {
            1 => Ok(whole.plan(&first)?.peak()),
            _ => Ok(part.plan(&first)?.peak().max(end.plan(&())?.peak())),
        }
    };
    // Refused here where the budget is too small, and nothing has run. The plan has built the model: everything that a checkpoint
    // holds is there.
    let mut predicted = plan()?;
    let named = step.named();
    let mut position = Position { step: 0, epoch: 0, batch: 0 };
    if let (true, Some(checkpoints)) = (fit.resume, &fit.checkpoints) {
        position = checkpoints.restore(&named)?.unwrap_or(position);
    }
    if fit.parts > 1 {
        step.write_out()?;
        predicted = plan()?;
    }
    drop(first);
    let steps = fit.steps(data);
    let mut history =
        History { losses: Vec::new(), position, predicted, measured: Bytes::ZERO, seconds: 0.0 };
    // One batch, or the parts of a step: the mean loss.
    let learn = |batches: &mut dyn Iterator<Item = Result<Batch>>,
                 number: u64,
                 measured: &mut Bytes|
     -> Result<Option<f64>> {
        let mut sum = 0.0;
        for _ in 0..fit.parts {
            let Some(batch) = batches.next().transpose()? else { return Ok(None) };
            let kept = batch.share();
            let called = match fit.parts {
                1 => whole.call_measured(batch),
                _ => part.call_measured(batch),
            };
            let (loss, seen) = called.map_err(|e| step.explained(e, number, kept))?;
            *measured = (*measured).max(seen.map_or(Bytes::ZERO, |m| m.used));
            sum += loss.cast(DType::F64)?.scalar::<f64>()?;
        }
        if fit.parts > 1 {
            let ((), seen) = end.call_measured(())?;
            *measured = (*measured).max(seen.map_or(Bytes::ZERO, |m| m.used));
        }
        Ok(Some(sum / fit.parts as f64))
    };
    let (mut rows, mut saved) = (0usize, None);
    let mut go = if position.step >= steps { Go::Stop } else { Go::On };
    while position.epoch < fit.epochs && go == Go::On {
        let key = RandomKey::new(fit.seed ^ position.epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let batches = data.batches(fit.batch).whole().shuffled(key)?;
        let mut batches = batches.after(position.batch as usize);
        let (mut sum, mut count) = (0.0, 0u32);
        let mut over = position.batch >= fit.steps_of_epoch(data) * fit.parts as u64;
        while !over && go == Go::On {
            let start = Instant::now();
            let made = learn(&mut batches, position.step + 1, &mut history.measured)?;
            let Some(loss) = made else { break };
            history.seconds += start.elapsed().as_secs_f64();
            rows += fit.batch * fit.parts;
            (sum, count) = (sum + loss, count + 1);
            position.step += 1;
            position.batch += fit.parts as u64;
            history.position = position;
            let told = Progress {
                position,
                steps,
                loss,
                rows_per_second: rows as f64 / history.seconds,
                held: memory::info("cpu:0")?.in_use,
                measured: history.measured,
                predicted,
            };
            go = after.step(&told)?;
            if position.step >= steps {
                go = Go::Stop;
            }
            if let Some(checkpoints) = &fit.checkpoints
                && fit.every > 0
                && position.step.is_multiple_of(fit.every)
            {
                checkpoints.save(&named, position)?;
                saved = Some(position);
            }
            over = position.batch >= fit.steps_of_epoch(data) * fit.parts as u64;
        }
        if !over {
            break;
        }
        let loss = sum / f64::from(count.max(1));
        history.losses.push(loss);
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
