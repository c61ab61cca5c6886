//! The `tonnage` command: thin over the libraries.
//!
//! Exit codes: 0 done; 1 the answer is no; 2 the question was wrong.

mod calibrate;
mod ops;
mod pack;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Memory planning for tensors: every byte is known before the run.
#[derive(Parser)]
#[command(name = "tonnage", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pack buffers with known lifetimes into the smallest arena.
    Pack(pack::Args),
    /// Measure this machine, so that budgets are kept in the way that is quickest on it.
    Calibrate(calibrate::Args),
    /// List the ops, with the dtypes that they take; or tell all about one.
    Ops(ops::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Pack(args) => pack::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Ops(args) => ops::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
