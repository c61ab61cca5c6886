//! All that a job of training is made of.

use std::path::Path;
use std::sync::Arc;

use tonnage::io::{read_json, save_json};
use tonnage::nn::Layer;
use tonnage::optim::{LossScale, Optimizer};
use tonnage::train::{Checkpoints, Fit, ShardedPlan};
use tonnage::world::World;
use tonnage::{Plan, Price, set_seed};

use super::args::TrainArgs;
use crate::datasets::{self, TrainTestData, Wanted};
use crate::models::{self, ModelConfig, Precision, Preset, Task};

/// The file beside checkpoints that says what model they are of.
const NAME: &str = "model.json";

/// What `tonnage train` runs and `tonnage plan` plans.
pub struct TrainJob {
    pub fit: Fit,
    pub task: Task,
    pub sizes: ModelConfig,
    pub model: Box<dyn Layer>,
    pub optimizer: Optimizer,
    pub data: TrainTestData,
    checkpoints: Option<Checkpoints>,
}

impl TrainJob {
    /// The job on paper: of one process, or of as many ranks as was said.
    pub fn on_paper(args: &TrainArgs) -> Result<TrainJob, String> {
        let world = args.ranks.map_or_else(World::alone, World::on_paper);
        let rows = [args.batch(), args.accumulate, args.ranks.unwrap_or(1)];
        let rows = rows.iter().fold(1usize, |rows, n| rows.saturating_mul(*n));
        TrainJob::of(args, &world, Some(rows))
    }

    /// The job of all ranks of a world.
    pub fn across(args: &TrainArgs, world: &World) -> Result<TrainJob, String> {
        TrainJob::of(args, world, None)
    }

    fn of(args: &TrainArgs, world: &World, planned: Option<usize>) -> Result<TrainJob, String> {
        args.check()?;
        let task = args.model.task();
        let (path, length) = (args.data.as_deref(), args.length());
        let wanted = Wanted { path, length, characters: None, planned };
        let data = datasets::load(task, &wanted)?;
        let sizes = ModelConfig {
            model: args.model,
            precision: args.precision(),
            classes: match args.preset {
                None => data.classes.clone(),
                Some(_) => vec![Preset::VOCABULARY],
            },
            width: args.width(),
            layers: args.layers(),
            length: args.length(),
            preset: args.preset,
            characters: data.characters.clone(),
            mean: data.mean,
        };
        set_seed(args.seed);
        let model = models::build(&sizes);
        let mut fit =
            Fit::new(args.epochs(), args.batch()).seed(args.seed).accumulate(args.accumulate);
        fit = fit.across(world);
        // The rate falls as if all epochs were run, so that a run in two halves is one run.
        let optimizer = args.optimizer(fit.steps(&data.learn).unwrap_or(1).max(1));
        fit = fit.held_out(&data.held_out);
        if let Some(budget) = args.budget {
            fit = fit.budget(budget);
        }
        if let Some(steps) = args.steps {
            fit = fit.at_most(steps);
        }
        if args.precision() == Precision::F16 {
            fit = fit.loss_scale(LossScale::new().map_err(|e| e.to_string())?);
        }
        let checkpoints = args.checkpoint.as_ref().map(|f| Checkpoints::new(f).keep_best());
        if let Some(checkpoints) = &checkpoints {
            fit = fit.checkpoints(checkpoints.clone(), 0);
        }
        if args.resume {
            fit = fit.resume();
        }
        Ok(TrainJob { fit, task, sizes, model, optimizer, data, checkpoints })
    }

    /// What a step takes.
    pub fn plan(&self) -> tonnage::Result<Arc<Plan>> {
        let loss = |said: &_, truth: &_| self.task.loss(said, truth);
        self.fit.predict(&self.model, &self.optimizer, &self.data.learn, loss)
    }

    /// What a rank takes, for each way to share the model among ranks.
    pub fn shardings(&self) -> tonnage::Result<Vec<ShardedPlan>> {
        let loss = |said: &_, truth: &_| self.task.loss(said, truth);
        self.fit.shardings(&self.model, &self.optimizer, &self.data.learn, loss)
    }

    /// What less memory would cost.
    pub fn prices(&self) -> tonnage::Result<Vec<Price>> {
        let loss = |said: &_, truth: &_| self.task.loss(said, truth);
        self.fit.prices(&self.model, &self.optimizer, &self.data.learn, loss)
    }

    /// Takes the folder of checkpoints for this process, and says in it what model they are of; those of another model are left alone.
    pub fn describe(&self, folder: &Path) -> Result<(), String> {
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.lock().map_err(|e| e.to_string())?;
        }
        if folder.join(NAME).exists() && described(folder)? != self.sizes {
            return Err(format!(
                "{}: checkpoints of another model are here; give the options and the data that they were trained with, or choose another folder",
                folder.display()
            ));
        }
        save_json(folder.join(NAME), &self.sizes).map_err(|e| e.to_string())
    }
}

/// The model that a folder of checkpoints is of.
pub fn described(folder: &Path) -> Result<ModelConfig, String> {
    let path = folder.join(NAME);
    read_json(&path, "model").map_err(|e: tonnage::Error| {
        format!("{e}; name a folder that `tonnage train --checkpoint` wrote")
    })
}
