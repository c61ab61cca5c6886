//! `cargo xtask soak`: all tests in release, those that have a long variant at its full length, and random programs.
//!
//! Such a test has `soak` in its name and reads `TONNAGE_SOAK` to choose its length, so its short
//! variant runs with all others and can't rot. Attributes that switch a test off were rejected for
//! that reason. Random programs (`python/fuzz`) have their slice in `python/tests/test_random_programs.py`.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode};

use crate::Subcommand;
use crate::cargo::{Cargo, root, target};
use crate::python;
use crate::step::{self, CheckStep, StepOutcome};

/// The row of this command.
pub const COMMAND: Subcommand = Subcommand {
    name: "soak",
    doc: "runs all tests in release, the long ones at full length, and random programs",
    words: "",
    run,
};

/// How many programs are drawn, with and without TensorFlow.
const GRAPHS: &str = "20000";

const STEPS: &[CheckStep] = &[
    CheckStep { name: "tests in release", run: tests },
    CheckStep { name: "random programs", run: programs },
    CheckStep { name: "random programs beside TensorFlow", run: programs_beside_tensorflow },
];

fn run(_words: &[String]) -> ExitCode {
    match step::run(STEPS, &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn tests() -> StepOutcome {
    Cargo::new("test --release --workspace --exclude xtask --tests --no-fail-fast")
        .env("TONNAGE_SOAK", "1")
        .run()
}

fn programs() -> StepOutcome {
    match python::environment(&target().join("python"), &python::PACKAGES) {
        Ok(python) => fuzz(&python, &["--seed", "1000", "--graphs", GRAPHS, "--jobs", &jobs()]),
        Err(why) => StepOutcome::Skipped(why),
    }
}

fn programs_beside_tensorflow() -> StepOutcome {
    match env::var_os("TENSORFLOW_PYTHON") {
        Some(python) => {
            let jobs = jobs();
            let words = ["--tensorflow", "--seed", "100000", "--graphs", GRAPHS, "--jobs", &jobs];
            fuzz(&root().join(python), &words)
        }
        None => StepOutcome::Skipped("name an interpreter that has it in TENSORFLOW_PYTHON".into()),
    }
}

/// As many processes as there are cores.
fn jobs() -> String {
    std::thread::available_parallelism().map_or(1, usize::from).to_string()
}

/// Draws and runs programs in an interpreter, with the package of this build before any other.
fn fuzz(python: &Path, words: &[&str]) -> StepOutcome {
    // All of the workspace, so that the tests' build serves.
    let build = Cargo::new("build --release --workspace --lib").run();
    if let StepOutcome::Failed(_) | StepOutcome::Skipped(_) = build {
        return build;
    }
    let folder = target().join("soak");
    if let Err(error) = python::put(&folder, "release") {
        return StepOutcome::Failed(format!("the package could not be put in place: {error}"));
    }
    let paths: [PathBuf; 2] = [folder, root().join("python")];
    let paths = match env::join_paths(&paths) {
        Ok(paths) => paths,
        Err(error) => return StepOutcome::Failed(format!("the path of the package: {error}")),
    };
    let typed = format!("python -m fuzz {}", words.join(" "));
    println!("$ PYTHONPATH={} {typed}", paths.to_string_lossy());
    let mut run = Process::new(python);
    run.args(["-m", "fuzz"]).args(words).env("PYTHONPATH", paths).current_dir(root());
    match run.status() {
        Ok(status) if status.success() => StepOutcome::Passed,
        Ok(status) => StepOutcome::Failed(format!("`{typed}`: {status}")),
        Err(error) => StepOutcome::Failed(format!("`{typed}`: {error}")),
    }
}
