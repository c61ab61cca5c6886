//! `cargo xtask soak`: all tests in release, those that have a long variant at its full length.
//!
//! Such a test has `soak` in its name and reads `TONNAGE_SOAK` to choose its length, so its short
//! variant runs with all others and can't rot. Attributes that switch a test off were rejected for
//! that reason.

use std::process::ExitCode;

use crate::Command;
use crate::cargo::Cargo;
use crate::step::Outcome;

/// The row of this command.
pub const COMMAND: Command = Command {
    name: "soak",
    doc: "runs all tests in release, the long ones at full length",
    words: "",
    run,
};

fn run(_words: &[String]) -> ExitCode {
    match Cargo::new("test --release --workspace --exclude xtask --tests --no-fail-fast")
        .env("TONNAGE_SOAK", "1")
        .run()
    {
        Outcome::Passed => ExitCode::SUCCESS,
        Outcome::Skipped(reason) | Outcome::Failed(reason) => {
            eprintln!("soak failed: {reason}");
            ExitCode::FAILURE
        }
    }
}
