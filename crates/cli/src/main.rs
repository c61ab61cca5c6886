//! The `tonnage` command: thin over the libraries.
//!
//! Exit codes: 0 done; 1 the answer is no; 2 the question was wrong.

/// Prints a line. Whoever reads may stop reading (`tonnage plan | head`): that is no mistake.
macro_rules! say {
    ($($text:tt)*) => { $crate::say(format_args!($($text)*)) };
}

mod calibrate;
mod datasets;
mod doctor;
mod explain;
mod files;
mod inference;
mod models;
mod onnx;
mod ops;
mod pack;
mod train;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What runs without a command.
const DEFAULT: [&str; 5] = ["tonnage", "train", "cnn", "--budget", "1MiB"];

/// Memory planning for tensors: every byte is known before the run.
#[derive(Parser)]
#[command(
    name = "tonnage",
    version,
    after_help = "Without a command: tonnage train cnn --budget 1MiB"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Train a small model on pictures, text or ratings, under a budget.
    Train(train::TrainArgs),
    /// Tell what training, or a call of an ONNX model, would take, step by step, and run nothing.
    Plan(train::TrainArgs),
    /// Tell why training, or a call of an ONNX model, takes what it takes, and what would save the most; with a chart, and files for other tools.
    Explain(explain::ExplainArgs),
    /// Tell how well a trained model does on what was held out.
    Eval(inference::Eval),
    /// Write text with a trained model.
    Sample(inference::SampleArgs),
    /// Pack buffers with known lifetimes into the smallest arena.
    Pack(pack::PackArgs),
    /// Measure this machine, so that budgets are met in the way that is quickest on it.
    Calibrate(calibrate::CalibrateArgs),
    /// Tell what this machine has, what is missing, and what to do about it.
    Doctor(doctor::DoctorArgs),
    /// Run an ONNX model on npy files.
    Run(onnx::RunArgs),
    /// List the tensors of a file with their types and bytes, or what an ONNX model holds, and load nothing.
    Inspect(files::Inspect),
    /// Tell the least, the largest, the mean and the NaNs of every tensor of a file, a piece at a time.
    Stats(files::StatsArgs),
    /// Convert a file of tensors to another format, a piece at a time.
    Convert(files::Convert),
    /// List the ops, with the dtypes that they take and what they do to memory; or tell all about one.
    Ops(ops::OpsArgs),
}

fn say(text: std::fmt::Arguments<'_>) {
    use std::io::{ErrorKind, Write};
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("error: the output cannot be written ({error})");
        }
        _ => {}
    }
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if onnx::is_about(&words) {
        return ended(onnx::run(&onnx::OnnxCli::parse_from(words)));
    }
    let Some(command) = Cli::parse().command.or_else(|| Cli::parse_from(DEFAULT).command) else {
        return ExitCode::from(2);
    };
    let done = match command {
        CliCommand::Train(args) => train::run(&args),
        CliCommand::Plan(args) => train::plan(&args),
        CliCommand::Explain(args) => explain::run(&args),
        CliCommand::Eval(args) => inference::eval(&args),
        CliCommand::Sample(args) => inference::sample(&args),
        CliCommand::Pack(args) => pack::run(&args),
        CliCommand::Calibrate(args) => calibrate::run(&args),
        CliCommand::Doctor(args) => doctor::run(&args),
        CliCommand::Run(args) => onnx::call(&args),
        CliCommand::Inspect(args) => files::inspect(&args),
        CliCommand::Stats(args) => files::stats(&args),
        CliCommand::Convert(args) => files::convert(&args),
        CliCommand::Ops(args) => ops::run(&args),
    };
    ended(done)
}

fn ended(done: Result<ExitCode, String>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
