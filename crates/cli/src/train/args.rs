//! Arguments of `tonnage train` and `tonnage plan`.

use std::path::PathBuf;

use clap::ValueEnum;
use tonnage::Budget;
use tonnage::optim::{Adafactor, Adagrad, Adam8Bit, Lion, Optimizer, RmsProp, Schedule, Sgd};

use crate::models::{Model, Precision, Preset, Task};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OptimizerName {
    Sgd,
    Momentum,
    Adam,
    Adamw,
    Adam8bit,
    Adagrad,
    Rmsprop,
    Adafactor,
    Lion,
}

/// Arguments of `tonnage train` and `tonnage plan`.
#[derive(clap::Args)]
pub struct TrainArgs {
    /// The model.
    #[arg(default_value = "cnn")]
    pub model: Model,
    /// For gpt: a published model, with 1,024 positions, in bf16 with adamw where nothing else is said.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["width", "layers"])]
    pub preset: Option<Preset>,
    /// What a step may take, such as 8MiB, or `least`; without it, as little as takes no time.
    #[arg(long, value_name = "BYTES")]
    pub budget: Option<Budget>,
    /// Where it runs: cpu:0, cuda:0, ...; `plan` and `explain` also take a card that need not be here: h200, a100, rtx4090 [default:
    /// cpu:0].
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Rows learned from at once [default: 32 for pictures, 16 for text, 256 for ratings].
    #[arg(long)]
    pub batch: Option<usize>,
    /// Batches whose gradients make one step.
    #[arg(long, value_name = "BATCHES", default_value_t = 1)]
    pub accumulate: usize,
    /// Epochs: passes over all rows [default: 20, of text 8].
    #[arg(long)]
    pub epochs: Option<u64>,
    /// Steps after which training ends, whatever the epochs.
    #[arg(long)]
    pub steps: Option<u64>,
    /// End where the loss on what is held out did not fall for this many epochs.
    #[arg(long, value_name = "EPOCHS")]
    pub patience: Option<u64>,
    /// How gradients change the parameters [default: adam, of a preset adamw].
    #[arg(long)]
    pub optimizer: Option<OptimizerName>,
    /// The learning rate at first; it falls to 0 as half a wave of the cosine [default: 0.003, of ratings 0.01, of a preset 0.0006].
    #[arg(long)]
    pub rate: Option<f64>,
    /// What the model computes in; of 16 bits, parameters are kept in f32 too. Ratings are learned in f32 alone [default: f32].
    #[arg(long)]
    pub precision: Option<Precision>,
    /// Width of the vectors of gpt, gru or recommender [default: 64, of ratings 8].
    #[arg(long)]
    pub width: Option<usize>,
    /// Blocks of a gpt [default: 2].
    #[arg(long)]
    pub layers: Option<usize>,
    /// Characters of a text that gpt or gru see at once [default: 64].
    #[arg(long)]
    pub length: Option<usize>,
    /// What to learn from: pictures as a folder of idx or npy files, an npz or csv file; text files; a table of ratings as csv. Without it,
    /// what the program brings with it.
    #[arg(long, value_name = "FILE|FOLDER")]
    pub data: Option<PathBuf>,
    /// A folder for checkpoints; the last three and the best are kept.
    #[arg(long, value_name = "FOLDER")]
    pub checkpoint: Option<PathBuf>,
    /// Go on from the last checkpoint.
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,
    /// First parameters and the order of rows are those of a seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// For `plan` and `explain`: the ranks that it would run on, which need not be there; `mpirun` starts those of `train`.
    #[arg(long, value_name = "RANKS")]
    pub ranks: Option<usize>,
    /// Under `mpirun`: end all ranks where one waits this many seconds for another; without it, ranks wait for ever.
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// A file for a line a step: a table where it ends in .csv, JSON otherwise.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Where to write the report; a page for a browser is written beside it, as .html.
    #[arg(long, value_name = "FILE", default_value = "tonnage-report.json")]
    pub report: PathBuf,
}

impl TrainArgs {
    /// What the model is called.
    pub fn name(&self) -> String {
        name(self.model)
    }

    /// Where the page for a browser is.
    pub fn page(&self) -> PathBuf {
        self.report.with_extension("html")
    }

    pub fn batch(&self) -> usize {
        self.batch.unwrap_or(match self.model.task() {
            Task::Pictures => 32,
            Task::Text => 16,
            Task::Ratings => 256,
        })
    }

    pub fn epochs(&self) -> u64 {
        self.epochs.unwrap_or(if self.model.task() == Task::Text { 8 } else { 20 })
    }

    pub fn width(&self) -> usize {
        if let Some(preset) = self.preset {
            return preset.sizes().width;
        }
        self.width.unwrap_or(if self.model.task() == Task::Ratings { 8 } else { 64 })
    }

    pub fn layers(&self) -> usize {
        self.layers.unwrap_or(self.preset.map_or(2, |preset| preset.sizes().layers))
    }

    pub fn length(&self) -> usize {
        self.length.unwrap_or(if self.preset.is_some() { Preset::LENGTH } else { 64 })
    }

    pub fn precision(&self) -> Precision {
        let usual = if self.preset.is_some() { Precision::Bf16 } else { Precision::default() };
        self.precision.unwrap_or(usual)
    }

    /// Refuses what the model has no use for, and what makes no sense: nothing that is given is ignored.
    pub fn check(&self) -> Result<(), String> {
        use Model::{Cnn, Gpt, Gru, Mlp, Recommender};
        let given = [
            ("width", self.width.is_some(), &[Gpt, Gru, Recommender][..]),
            ("layers", self.layers.is_some(), &[Gpt]),
            ("length", self.length.is_some(), &[Gpt, Gru]),
            ("precision", self.precision.is_some(), &[Mlp, Cnn, Gpt, Gru]),
            ("preset", self.preset.is_some(), &[Gpt]),
        ];
        for (option, is_given, of) in given {
            if is_given && !of.contains(&self.model) {
                let of: Vec<String> = of.iter().map(|model| name(*model)).collect();
                let (own, of) = (self.name(), of.join(", "));
                return Err(format!("`--{option}` is for {of}: leave it out for {own}"));
            }
        }
        if let Some(length) =
            self.length.filter(|len| self.preset.is_some() && *len > Preset::LENGTH)
        {
            let most = Preset::LENGTH;
            return Err(format!("`--length {length}`: the preset has {most} positions"));
        }
        let sizes = [
            ("width", self.width),
            ("layers", self.layers),
            ("length", self.length),
            ("batch", self.batch),
            ("accumulate", Some(self.accumulate)),
            ("patience", self.patience.map(|epochs| epochs as usize)),
            ("timeout", self.timeout.map(|seconds| seconds as usize)),
            ("ranks", self.ranks),
        ];
        match sizes.iter().find(|(_, size)| *size == Some(0)) {
            Some((option, _)) => Err(format!("`--{option} 0`: give at least 1")),
            None => Ok(()),
        }
    }

    /// The optimizer, whose rate falls in the course of `steps` steps.
    pub fn optimizer(&self, steps: u64) -> Optimizer {
        let (rule, usual) = match self.model.task() {
            _ if self.preset.is_some() => (OptimizerName::Adamw, 0.0006),
            Task::Ratings => (OptimizerName::Adam, 0.01),
            _ => (OptimizerName::Adam, 0.003),
        };
        let (rule, start) = (self.optimizer.unwrap_or(rule), self.rate.unwrap_or(usual));
        let made = optimizer(rule, Schedule::Cosine { start, end: 0.0, steps });
        if self.precision() == Precision::F32 { made } else { made.master_weights() }
    }
}

fn name(model: Model) -> String {
    model.to_possible_value().map_or_else(String::new, |m| m.get_name().into())
}

fn optimizer(rule: OptimizerName, rate: Schedule) -> Optimizer {
    match rule {
        OptimizerName::Sgd => Optimizer::sgd(rate),
        OptimizerName::Momentum => Optimizer::new(Sgd { momentum: 0.9, nesterov: false }, rate),
        OptimizerName::Adam => Optimizer::adam(rate),
        OptimizerName::Adamw => Optimizer::adamw(rate, 0.01),
        OptimizerName::Adam8bit => Optimizer::new(Adam8Bit::default(), rate),
        OptimizerName::Adagrad => Optimizer::new(Adagrad::default(), rate),
        OptimizerName::Rmsprop => Optimizer::new(RmsProp::default(), rate),
        OptimizerName::Adafactor => Optimizer::new(Adafactor::default(), rate),
        OptimizerName::Lion => Optimizer::new(Lion::default(), rate),
    }
}
