//! How well a model does, and the report of a run.

use std::fmt;

use serde::Serialize;
use tonnage::io::save_text;
use tonnage::nn::{Layer, Parameters};
use tonnage::train::{History, Sharding, evaluate, mean_loss};
use tonnage::{Budget, Bytes, Plan};

use super::args::TrainArgs;
use super::job::TrainJob;
use super::page::Page;
use crate::datasets::Examples;
use crate::models::Task;

/// Rows looked at together.
const BATCH: usize = 256;

/// How well a model does on what was held out.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HeldOutScore {
    loss: f64,
    /// Of pictures and characters.
    accuracy: Option<f64>,
    /// Of ratings, the root of the mean square of what they are off by.
    off_by: Option<f64>,
    rows: usize,
}

/// Looks.
pub fn found(task: Task, model: &dyn Layer, rows: &Examples) -> tonnage::Result<HeldOutScore> {
    let (len, batch) = (rows.len(), BATCH.min(rows.len().max(1)));
    if task == Task::Ratings {
        let loss = mean_loss(&model, rows, batch, |said, truth| task.loss(said, truth))?;
        return Ok(HeldOutScore { loss, accuracy: None, off_by: Some(loss.sqrt()), rows: len });
    }
    let seen = evaluate(&model, rows, batch)?;
    Ok(HeldOutScore { loss: seen.loss, accuracy: Some(seen.accuracy), off_by: None, rows: len })
}

impl fmt::Display for HeldOutScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldOutScore { loss, accuracy, off_by, rows } = self;
        match (accuracy, off_by) {
            (Some(share), _) => {
                write!(
                    f,
                    "accuracy {:.2}%, loss {loss:.4} on {rows} rows that were held out",
                    share * 100.0
                )
            }
            (_, Some(off)) => write!(f, "off by {off:.4} on {rows} ratings that were held out"),
            _ => write!(f, "loss {loss:.4} on {rows} rows that were held out"),
        }
    }
}

/// What a run came to, for the file.
#[derive(Serialize)]
struct TrainReport<'a> {
    model: String,
    parameters: u64,
    #[serde(flatten)]
    found: HeldOutScore,
    losses: &'a [f64],
    steps: u64,
    seconds: f64,
    predicted_peak: u64,
    /// None where no step was made.
    measured_peak: Option<u64>,
    /// What the data hold beside a step.
    data: u64,
    /// What MPI took of this process when it started; in no plan.
    engine: u64,
    budget: Option<u64>,
    plan: tonnage::Explanation,
}

/// Says what came of a run, and writes the report. What was learned is said before anything is written, which can fail.
pub fn write(
    args: &TrainArgs,
    job: &TrainJob,
    plan: &Plan,
    (history, found): (&History, HeldOutScore),
    page: &Page<'_>,
) -> Result<(), String> {
    let History { losses, position, steps, predicted, measured, data, seconds, .. } = history;
    let measured = (*steps > 0).then_some(*measured);
    let parameters = job.model.count();
    let all = position.step;
    match measured {
        Some(_) => say!("learned {parameters} parameters in {all} steps, {seconds:.1} s"),
        None => say!("nothing was left to learn after {all} steps"),
    }
    say!("{found}");
    match measured {
        Some(measured) => say!("peak: predicted {predicted}, measured {measured}"),
        None => say!("peak: predicted {predicted}, not measured: no step was made"),
    }
    if !history.engine.is_zero() {
        say!("beside it on each rank: {} of MPI, measured as it started", history.engine);
    }
    if history.sharding != Sharding::Replicas {
        say!("sharding: {}", history.sharding);
    }
    let report = TrainReport {
        model: args.name(),
        parameters,
        found,
        losses,
        steps: position.step,
        seconds: *seconds,
        predicted_peak: predicted.get(),
        measured_peak: measured.map(Bytes::get),
        data: data.get(),
        engine: history.engine.get(),
        budget: args.budget.and_then(Budget::bytes).map(Bytes::get),
        plan: plan.explain(),
    };
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    save_text(&args.report, &text).map_err(|error| error.to_string())?;
    page.save(Ok(history))?;
    say!("report: {}, {}", args.report.display(), args.page().display());
    Ok(())
}
