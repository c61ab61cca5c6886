//! The `tonnage` command: thin over the libraries.
//!
//! Exit codes: 0 done; 1 the answer is no; 2 the question was wrong.

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
}

fn main() -> ExitCode {
    let Command::Pack(args) = Cli::parse().command;
    match pack::run(&args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
