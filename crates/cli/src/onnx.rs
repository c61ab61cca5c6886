//! `tonnage plan|explain|run|inspect model.onnx`: a model of a file, planned, run and looked at.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use tonnage::io::{can_save, read_npy, save_npy};
use tonnage::{Budget, Tensor};
use tonnage_onnx::{Model, PortDim, load, outline};

use crate::explain::show;
use crate::train::answer;

/// What is done with an ONNX model.
#[derive(Parser)]
#[command(name = "tonnage")]
pub struct OnnxCli {
    #[command(subcommand)]
    command: OnnxCommand,
}

#[derive(Subcommand)]
enum OnnxCommand {
    /// Tell what a call would take, step by step, and run nothing.
    Plan(Planned),
    /// Tell why a call takes what it takes, and what would save the most; with a chart, and files for other tools.
    Explain(Explained),
    /// Run it on npy files.
    Run(RunArgs),
    /// List its inputs, outputs, ops and weights, and load nothing.
    Inspect(Inspected),
}

/// Lengths of a call, and what it may take.
#[derive(clap::Args)]
pub struct Sized {
    /// An ONNX model.
    model: PathBuf,
    /// Rows: the first length of the first input.
    #[arg(long)]
    batch: Option<usize>,
    /// Another length that the file leaves open, such as seq=128. May be given several times.
    #[arg(long = "dim", value_name = "NAME=LENGTH", value_parser = length)]
    dims: Vec<(String, usize)>,
    /// What a call may take, such as 256MiB, or `least`; without it, as little as takes no time.
    #[arg(long, value_name = "BYTES")]
    budget: Option<Budget>,
}

#[derive(clap::Args)]
struct Planned {
    #[command(flatten)]
    sized: Sized,
    /// The most that a number or a length may be that is only known when the model runs, by the name of the value, such as Ceil_out=800. The model is planned in
    /// segments then. May be given several times.
    #[arg(long = "bound", value_name = "NAME=NUMBER", value_parser = length)]
    bounds: Vec<(String, usize)>,
}

#[derive(clap::Args)]
#[group(id = "explained")]
struct Explained {
    #[command(flatten)]
    sized: Sized,
    /// A file to save it as, by the end of its name: .html a page, .csv, .json, .trace.json for Perfetto, .pb.gz for pprof. May be
    /// given several times.
    #[arg(long, value_name = "FILE")]
    save: Vec<PathBuf>,
    /// Print every step.
    #[arg(long)]
    all: bool,
}

/// Arguments of `tonnage run`.
#[derive(clap::Args)]
pub struct RunArgs {
    /// An ONNX model.
    model: PathBuf,
    /// An npy file for each input, in order.
    #[arg(long, value_name = "FILE", required = true)]
    input: Vec<PathBuf>,
    /// An npy file for each output, in order.
    #[arg(long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// What a call may take, such as 256MiB, or `least`; without it, as little as takes no time.
    #[arg(long, value_name = "BYTES")]
    budget: Option<Budget>,
}

#[derive(clap::Args)]
struct Inspected {
    /// An ONNX model.
    model: PathBuf,
}

/// Whether a command line is about an ONNX model, where the command takes other things as well.
pub fn is_about(words: &[OsString]) -> bool {
    let takes = ["plan", "explain", "inspect"]
        .iter()
        .any(|name| words.get(1).is_some_and(|word| word == name));
    takes
        && words[2..]
            .iter()
            .any(|word| Path::new(word).extension().is_some_and(|end| end == "onnx"))
}

fn length(text: &str) -> Result<(String, usize), String> {
    let wrong = || format!("`{text}` is no length; write it like seq=128");
    let (name, number) = text.rsplit_once('=').ok_or_else(wrong)?;
    Ok((name.to_string(), number.parse().map_err(|_| wrong())?))
}

fn text(error: tonnage::Error) -> String {
    error.to_string()
}

/// A model, and a bar that shows how far it is read; gone with the last of its handles, or when it is cleared.
fn loaded(path: &Path, budget: Option<Budget>) -> Result<(Model, ProgressBar), String> {
    let model = load(path).map_err(text)?;
    let bar = ProgressBar::new(model.nodes() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} nodes") {
        bar.set_style(style);
    }
    let shown = bar.clone();
    let model = model.on_node(move |nodes| shown.set_position(nodes as u64));
    match budget {
        Some(budget) => model.budget(budget).map_err(text).map(|model| (model, bar)),
        None => Ok((model, bar)),
    }
}

impl Sized {
    /// Types of the inputs.
    fn specs(&self, model: &Model) -> Result<Vec<Tensor>, String> {
        let mut lengths: Vec<(&str, usize)> =
            self.dims.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let first = model
            .inputs()
            .first()
            .and_then(|port| port.dims.as_ref())
            .and_then(|dims| dims.first());
        if let Some(batch) = self.batch {
            match first {
                Some(PortDim::Open(name)) => lengths.push((name, batch)),
                Some(PortDim::Known(n)) if *n == batch => {}
                Some(PortDim::Known(n)) => {
                    return Err(format!("`--batch {batch}`: the model takes {n} rows"));
                }
                None => return Err("`--batch`: the model's first input has no length".into()),
            }
        }
        model.specs(&lengths).map_err(text)
    }
}

/// Runs a command about an ONNX model.
pub fn run(args: &OnnxCli) -> Result<ExitCode, String> {
    match &args.command {
        OnnxCommand::Plan(planned) => plan(planned),
        OnnxCommand::Explain(args) => explain(args),
        OnnxCommand::Run(args) => call(args),
        OnnxCommand::Inspect(args) => inspect(&args.model),
    }
}

fn plan(args: &Planned) -> Result<ExitCode, String> {
    let sized = &args.sized;
    let (model, bar) = loaded(&sized.model, sized.budget)?;
    let specs = sized.specs(&model)?;
    let bounds: Vec<(&str, usize)> =
        args.bounds.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let plans = match bounds.is_empty() {
        true => model.plan(&specs).map(|plan| vec![plan]),
        false => model.plans(&specs, &bounds),
    };
    bar.finish_and_clear();
    let plans = match plans {
        Ok(plans) => plans,
        Err(error) => return answer(&error),
    };
    plans.iter().for_each(|plan| say!("{plan}"));
    if let (2.., Some(most)) = (plans.len(), plans.iter().map(|plan| plan.peak()).max()) {
        say!("{} segments, one after the other: at most {most} within these bounds", plans.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(args: &Explained) -> Result<ExitCode, String> {
    let sized = &args.sized;
    for path in &args.save {
        can_save(path).map_err(text)?;
    }
    let (model, bar) = loaded(&sized.model, sized.budget)?;
    let specs = sized.specs(&model)?;
    let plan = model.plan(&specs);
    bar.finish_and_clear();
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return answer(&error),
    };
    let title = format!("a call of {}", sized.model.display());
    show(&title, &plan, sized.budget.and_then(Budget::bytes), (args.all, &args.save), || {
        model.prices(&specs)
    })
}

/// `tonnage run`.
pub fn call(args: &RunArgs) -> Result<ExitCode, String> {
    for path in &args.output {
        can_save(path).map_err(text)?;
    }
    let (model, bar) = loaded(&args.model, args.budget)?;
    let inputs =
        args.input.iter().map(read_npy).collect::<tonnage::Result<Vec<Tensor>>>().map_err(text)?;
    let outputs = model.call(inputs);
    bar.finish_and_clear();
    let outputs = match outputs {
        Ok(outputs) => outputs,
        Err(error) => return answer(&error),
    };
    if args.output.len() > outputs.len() {
        return Err(format!("{} files for {} outputs", args.output.len(), outputs.len()));
    }
    for (at, (port, value)) in model.outputs().iter().zip(outputs).enumerate() {
        let tensor = value.tensor().map_err(text)?;
        match args.output.get(at) {
            Some(path) => {
                save_npy(path, &tensor).map_err(text)?;
                say!("{}: {}, saved: {}", port.name, tensor.ty(), path.display());
            }
            None => say!("{}: {tensor}", port.name),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn inspect(path: &Path) -> Result<ExitCode, String> {
    let outline = outline(path).map_err(text)?;
    for (kind, ports) in [("input", &outline.inputs), ("output", &outline.outputs)] {
        for port in ports {
            say!("{kind}  {}  {port}", crate::files::printed(&port.name));
        }
    }
    for (op, count) in &outline.ops {
        say!("{count:>6}  {op}");
    }
    let opsets = outline.opsets.iter().map(|(name, version)| match name.is_empty() {
        true => format!("opset {version}"),
        false => format!("{} {version}", crate::files::printed(name)),
    });
    let opsets: Vec<String> = opsets.collect();
    let (nodes, weights) = (outline.nodes, outline.weights);
    let bytes = outline.bytes.ok_or("more bytes than any machine addresses")?;
    say!("onnx, {}: {nodes} nodes, {weights} weights, {bytes}", opsets.join(", "));
    Ok(ExitCode::SUCCESS)
}
