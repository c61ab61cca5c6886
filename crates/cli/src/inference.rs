//! `tonnage eval` and `tonnage sample`: a model that was trained is used.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tonnage::nn::{Layer, Mode};
use tonnage::train::{Checkpoints, Which, predictor};
use tonnage::{DType, Elementwise, Part, RandomKey, Tensor, tensor, zeros};

use crate::datasets::{self, Wanted, text};
use crate::models::{self, ModelConfig, Task};
use crate::train::{described, found, on_device};

/// Arguments of `tonnage eval`.
#[derive(clap::Args)]
pub struct Eval {
    /// A folder that `tonnage train --checkpoint` wrote.
    #[arg(long, value_name = "FOLDER")]
    checkpoint: PathBuf,
    /// The best checkpoint, not the last.
    #[arg(long)]
    best: bool,
    /// Where it runs: cpu:0, cuda:0, ... [default: cpu:0].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// The data, as in training: the part that is held out is looked at.
    #[arg(long, value_name = "FILE|FOLDER")]
    data: Option<PathBuf>,
}

/// Arguments of `tonnage sample`.
#[derive(clap::Args)]
pub struct SampleArgs {
    /// A folder that `tonnage train gpt|gru --checkpoint` wrote.
    #[arg(long, value_name = "FOLDER")]
    checkpoint: PathBuf,
    /// The best checkpoint, not the last.
    #[arg(long)]
    best: bool,
    /// Where it runs: cpu:0, cuda:0, ... [default: cpu:0].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// What the text begins with.
    #[arg(long, default_value = "\n")]
    prompt: String,
    /// Characters to write.
    #[arg(long, default_value_t = 400)]
    characters: usize,
    /// How bold: 0 always takes the likeliest.
    #[arg(long, default_value_t = 0.8)]
    temperature: f64,
    /// Which text it becomes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A model with the parameters of a checkpoint.
fn loaded(
    sizes: &ModelConfig,
    folder: &Path,
    best: bool,
    first: &Tensor,
) -> Result<Box<dyn Layer>, String> {
    let model = models::build(sizes);
    // Parameters are made when a first input comes; it is only looked at.
    predictor(&model).plan(first).map_err(|e| e.to_string())?;
    let which = if best { Which::Best } else { Which::Last };
    let found = Checkpoints::new(folder).load_model(&model, which).map_err(|e| e.to_string())?;
    match found {
        Some(_) => Ok(model),
        None => Err(format!("{}: no checkpoint here", folder.display())),
    }
}

/// `tonnage eval`.
pub fn eval(args: &Eval) -> Result<ExitCode, String> {
    let _scope = on_device(args.device.as_deref())?;
    let sizes = described(&args.checkpoint)?;
    let task = sizes.model.task();
    let characters = (task == Task::Text).then_some(sizes.characters.as_str());
    let path = args.data.as_deref();
    let wanted = Wanted { path, length: sizes.length, characters, planned: None };
    let data = datasets::load(task, &wanted)?;
    if data.classes.iter().zip(&sizes.classes).any(|(there, known)| there > known) {
        let (there, known) = (&data.classes, &sizes.classes);
        return Err(format!("the data have {there:?} classes, and the model knows {known:?}"));
    }
    let first = data.held_out.batches(1).next().ok_or("nothing is held out")?;
    let first = first.map_err(|e| e.to_string())?.0;
    let model = loaded(&sizes, &args.checkpoint, args.best, &first)?;
    say!("{}", found(task, &*model, &data.held_out).map_err(|e| e.to_string())?);
    Ok(ExitCode::SUCCESS)
}

/// `tonnage sample`.
pub fn sample(args: &SampleArgs) -> Result<ExitCode, String> {
    let _scope = on_device(args.device.as_deref())?;
    let sizes = described(&args.checkpoint)?;
    if sizes.model.task() != Task::Text {
        return Err(format!("{}: no model of text", args.checkpoint.display()));
    }
    if !(args.temperature >= 0.0 && args.temperature.is_finite()) {
        return Err(format!("a temperature of {}; use 0 or more", args.temperature));
    }
    let numbers = text::numbers(&args.prompt, &sizes.characters)
        .map_err(|c| format!("`{c}` is no character that the model knows"))?;
    if numbers.is_empty() {
        return Err("an empty prompt; give at least one character".into());
    }
    let empty = zeros([1, sizes.length]).and_then(|x| x.cast(DType::I64));
    let model = loaded(&sizes, &args.checkpoint, args.best, &empty.map_err(|e| e.to_string())?)?;
    let written = write(&*model, &sizes, numbers, args).map_err(|e| e.to_string())?;
    let characters: Vec<char> = sizes.characters.chars().collect();
    let text: String = written.iter().filter_map(|i| characters.get(*i as usize)).collect();
    say!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// Goes on writing, a character at a time. What is behind the last one is never looked at, so that one plan serves every position.
fn write(
    model: &dyn Layer,
    sizes: &ModelConfig,
    mut numbers: Vec<i64>,
    args: &SampleArgs,
) -> tonnage::Result<Vec<i64>> {
    let length = sizes.length;
    // A preset's vocabulary is larger than a text's.
    let known = Part::from(0..sizes.characters.chars().count() as i64);
    let next = tonnage::function(|(seen, at): (Tensor, Tensor)| {
        let said = model.forward(&seen, Mode::Inference)?.cast(DType::F32)?;
        said.gather(&at, 1)?.squeeze([0, 1])?.slice(&[known])
    });
    let mut key = RandomKey::new(args.seed);
    for _ in 0..args.characters {
        let seen = &numbers[numbers.len().saturating_sub(length)..];
        let mut row = seen.to_vec();
        row.resize(length, 0);
        let row = tensor(row)?.reshape([1, length])?;
        let logits = next.call((row, tensor([seen.len() as i64 - 1])?))?;
        let chosen = if args.temperature == 0.0 {
            logits.argmax(-1)?
        } else {
            let [own, rest] = key.split();
            key = rest;
            own.categorical(&logits.div(args.temperature)?.expand_dims(0)?, 1)?
        };
        numbers.push(chosen.cast(DType::I64)?.reshape([1])?.to_vec::<i64>()?[0]);
    }
    Ok(numbers)
}
