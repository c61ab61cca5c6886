//! `tonnage train` and `tonnage plan`: a small model learns pictures, under a budget; or is told what that would take.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tonnage::io::save_text;
use tonnage::memory;
use tonnage::nn::{Activation, Convolution, Dense, Dropout, Flatten, MaxPool, Sequential};
use tonnage::optim::{Adafactor, Adagrad, Adam8Bit, Lion, Optimizer, RmsProp, Schedule, Sgd};
use tonnage::report::{Report as HtmlReport, save_html};
use tonnage::train::{Checkpoints, Evaluation, Fit, Go, History, Progress, evaluate};
use tonnage::{Bytes, Conv, ErrorKind, Plan, Pool, Price, Tensor, set_seed};

use crate::digits::{self, Digits};

/// A model that can be trained.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// Two dense layers.
    Mlp,
    /// Two convolutions and two dense layers.
    Cnn,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rule {
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
pub struct Args {
    /// The model.
    #[arg(default_value = "cnn")]
    model: Model,
    /// What a step may take, such as 8MiB; without it, as much as is quickest.
    #[arg(long, value_name = "BYTES")]
    pub budget: Option<Bytes>,
    /// Pictures learned from at once.
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// Times that all pictures are gone through.
    #[arg(long, default_value_t = 20)]
    epochs: u64,
    /// Steps after which training ends, whatever the epochs.
    #[arg(long)]
    steps: Option<u64>,
    /// How gradients change the parameters.
    #[arg(long, default_value = "adam")]
    optimizer: Rule,
    /// The learning rate at first; it falls to 0 as half a wave of the cosine.
    #[arg(long, default_value_t = 0.003)]
    rate: f64,
    /// A folder with pictures of one's own as idx files; without it, digits that the program brings with it.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// A folder for checkpoints.
    #[arg(long, value_name = "FOLDER")]
    checkpoint: Option<PathBuf>,
    /// Go on from the last checkpoint.
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// First parameters and the order of pictures are those of a seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to write the report; a page for a browser is written beside it, as .html.
    #[arg(long, value_name = "FILE", default_value = "tonnage-report.json")]
    report: PathBuf,
}

impl Args {
    /// What the model is called.
    pub fn name(&self) -> String {
        self.model.to_possible_value().map_or_else(String::new, |m| m.get_name().into())
    }

    /// Where the page for a browser is.
    fn page(&self) -> PathBuf {
        self.report.with_extension("html")
    }
}

/// What a run came to, for the file.
#[derive(Serialize)]
struct Report<'a> {
    model: String,
    parameters: u64,
    accuracy: f64,
    loss: f64,
    losses: &'a [f64],
    steps: u64,
    seconds: f64,
    predicted_peak: u64,
    measured_peak: u64,
    budget: Option<u64>,
    plan: tonnage::Explanation,
}

fn build(model: Model, kinds: usize) -> Sequential {
    let layers = Sequential::new();
    let layers = match model {
        Model::Mlp => layers.then(Flatten).then(Dense::new(128)).then(Activation::Relu),
        Model::Cnn => layers
            .then(Convolution::new(16, &[3, 3], Conv::same()))
            .then(Activation::Relu)
            .then(Convolution::new(32, &[3, 3], Conv::same()))
            .then(Activation::Relu)
            .then(MaxPool(Pool::of(2)))
            .then(Flatten)
            .then(Dropout(0.25))
            .then(Dense::new(64))
            .then(Activation::Relu),
    };
    layers.then(Dense::new(kinds))
}

fn optimizer(rule: Rule, rate: Schedule) -> Optimizer {
    match rule {
        Rule::Sgd => Optimizer::sgd(rate),
        Rule::Momentum => Optimizer::new(Sgd { momentum: 0.9, nesterov: false }, rate),
        Rule::Adam => Optimizer::adam(rate),
        Rule::Adamw => Optimizer::adamw(rate, 0.01),
        Rule::Adam8bit => Optimizer::new(Adam8Bit::default(), rate),
        Rule::Adagrad => Optimizer::new(Adagrad::default(), rate),
        Rule::Rmsprop => Optimizer::new(RmsProp::default(), rate),
        Rule::Adafactor => Optimizer::new(Adafactor::default(), rate),
        Rule::Lion => Optimizer::new(Lion::default(), rate),
    }
}

fn loss(logits: &Tensor, labels: &Tensor) -> tonnage::Result<Tensor> {
    logits.sparse_cross_entropy(labels)
}

/// All that the commands need.
pub struct Job {
    fit: Fit,
    model: Sequential,
    optimizer: Optimizer,
    digits: Digits,
}

impl Job {
    pub fn new(args: &Args) -> Result<Job, String> {
        set_seed(args.seed);
        let digits = digits::load(args.data.as_deref())?;
        let mut fit = Fit::new(args.epochs, args.batch).seed(args.seed);
        if let Some(budget) = args.budget {
            fit = fit.budget(budget);
        }
        if let Some(folder) = &args.checkpoint {
            fit = fit.checkpoints(Checkpoints::new(folder), 0);
        }
        if args.resume {
            fit = fit.resume();
        }
        let model = build(args.model, digits.kinds);
        let steps = fit.steps(&digits.learn).max(1);
        let rate = Schedule::Cosine { start: args.rate, end: 0.0, steps };
        Ok(Job { fit, model, optimizer: optimizer(args.optimizer, rate), digits })
    }

    pub fn plan(&self) -> tonnage::Result<std::sync::Arc<Plan>> {
        self.fit.predict(&self.model, &self.optimizer, &self.digits.learn, loss)
    }

    /// What less memory would cost.
    pub fn prices(&self) -> tonnage::Result<Vec<Price>> {
        self.fit.prices(&self.model, &self.optimizer, &self.digits.learn, loss)
    }
}

/// Says no where a budget is too small, and that the question was wrong otherwise.
pub fn answer(error: &tonnage::Error) -> Result<ExitCode, String> {
    match error.kind() {
        ErrorKind::OverBudget { .. } => {
            eprintln!("{error}");
            Ok(ExitCode::from(1))
        }
        _ => Err(error.to_string()),
    }
}

/// `tonnage plan`: runs nothing.
pub fn plan(args: &Args) -> Result<ExitCode, String> {
    let job = Job::new(args)?;
    match job.plan() {
        Ok(plan) => {
            say!("{plan}");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => answer(&error),
    }
}

/// `tonnage train`.
pub fn run(args: &Args) -> Result<ExitCode, String> {
    let job = Job::new(args)?;
    let plan = match job.plan() {
        Ok(plan) => plan,
        Err(error) => return answer(&error),
    };
    let bar = bar();
    let after = |progress: &Progress| {
        show(&bar, progress);
        match args.steps {
            Some(steps) if progress.position.step >= steps => Go::Stop,
            _ => Go::On,
        }
    };
    let Job { fit, model, optimizer, digits } = &job;
    let say = |error: tonnage::Error| error.to_string();
    let recording = memory::record("cpu:0").map_err(say)?;
    let made = fit.run(model, optimizer, &digits.learn, loss, after);
    bar.finish_and_clear();
    let page = Page { args, job: &job, plan: &plan, timeline: recording.finish() };
    let history = match made {
        Ok(history) => history,
        Err(error) => {
            page.save(Err(&error))?;
            return answer(&error);
        }
    };
    page.save(Ok(&history))?;
    let found = evaluate(model, &digits.held_out, 256).map_err(|error| error.to_string())?;
    report(args, &job, &plan, &history, &found)?;
    Ok(ExitCode::SUCCESS)
}

/// The page about a run.
struct Page<'a> {
    args: &'a Args,
    job: &'a Job,
    plan: &'a Plan,
    timeline: memory::Timeline,
}

impl Page<'_> {
    /// Saves it, also of a run that failed: it shows how far that came.
    fn save(&self, came_to: Result<&History, &tonnage::Error>) -> Result<(), String> {
        let Page { args, job, plan, timeline } = self;
        let say = |error: tonnage::Error| error.to_string();
        let title = format!("training {}", args.name());
        let mut report = HtmlReport::new(&title).plan(plan).timeline(timeline);
        report = report.prices(job.prices().map_err(say)?);
        if let Some(budget) = args.budget {
            report = report.budget(budget);
        }
        report = match came_to {
            Ok(history) => report.measured(history.measured).fact("steps", history.position.step),
            Err(error) => report.failed(error),
        };
        save_html(args.page(), &report).map_err(say)
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{bar:24} {pos}/{len} {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    let Progress { position, steps, loss, rows_per_second, held, measured, predicted } = progress;
    bar.set_length(*steps);
    bar.set_position(position.step);
    bar.set_message(format!(
        "loss {loss:.4}, {rows_per_second:.0} rows/s, {held} held, peak {measured} of {predicted} predicted"
    ));
}

fn report(
    args: &Args,
    job: &Job,
    plan: &Plan,
    history: &History,
    found: &Evaluation,
) -> Result<(), String> {
    use tonnage::nn::Parameters;
    let History { losses, position, predicted, measured, seconds } = history;
    let report = Report {
        model: args.name(),
        parameters: job.model.count(),
        accuracy: found.accuracy,
        loss: found.loss,
        losses,
        steps: position.step,
        seconds: *seconds,
        predicted_peak: predicted.get(),
        measured_peak: measured.get(),
        budget: args.budget.map(Bytes::get),
        plan: plan.explain(),
    };
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    save_text(&args.report, &text).map_err(|error| error.to_string())?;
    let rows = job.digits.held_out.len();
    say!("learned {} parameters in {} steps, {seconds:.1} s", report.parameters, position.step);
    say!("accuracy {:.2}% on {rows} pictures that were held out", found.accuracy * 100.0);
    say!("peak: predicted {predicted}, measured {measured}");
    say!("report: {}, {}", args.report.display(), args.page().display());
    Ok(())
}
