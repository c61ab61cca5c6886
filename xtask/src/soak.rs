//! `cargo xtask soak`: all tests in release, those that have a long variant at its full length, and random programs.
//!
//! Such a test has `soak` in its name and reads `TONNAGE_SOAK` to choose its length, so its short
//! variant runs with all others and can't rot. Attributes that switch a test off were rejected for
//! that reason. Random programs (`python/fuzz`) have their slice in `python/tests/test_random_programs.py`.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode};

use crate::Command;
use crate::cargo::{Cargo, root, target};
use crate::python;
use crate::step::{self, Outcome, Step};

/// The row of this command.
pub const COMMAND: Command = Command {
    name: "soak",
    doc: "runs all tests in release, the long ones at full length, and random programs",
    words: "",
    run,
};

/// How many programs are drawn, with and without TensorFlow.
const GRAPHS: &str = "20000";

const STEPS: &[Step] = &[
    Step { name: "tests in release", run: tests },
    Step { name: "random programs", run: programs },
    Step { name: "random programs beside TensorFlow", run: programs_beside_tensorflow },
];

fn run(_words: &[String]) -> ExitCode {
    match step::run(STEPS, &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn tests() -> Outcome {
    Cargo::new("test --release --workspace --exclude xtask --tests --no-fail-fast")
        .env("TONNAGE_SOAK", "1")
        .run()
}

fn programs() -> Outcome {
    match python::environment(&target().join("python")) {
        Ok(python) => fuzz(&python, &["--seed", "1000", "--graphs", GRAPHS]),
        Err(why) => Outcome::Skipped(why),
    }
}

fn programs_beside_tensorflow() -> Outcome {
    match env::var_os("TENSORFLOW_PYTHON") {
        Some(python) => {
            let words = ["--tensorflow", "--seed", "100000", "--graphs", GRAPHS];
            fuzz(&root().join(python), &words)
        }
        None => Outcome::Skipped("name an interpreter that has it in TENSORFLOW_PYTHON".into()),
    }
}

/// Draws and runs programs in an interpreter, with the package of this build before any other.
fn fuzz(python: &Path, words: &[&str]) -> Outcome {
    // All of the workspace, so that the tests' build serves.
    let build = Cargo::new("build --release --workspace --lib").run();
    if let Outcome::Failed(_) | Outcome::Skipped(_) = build {
        return build;
    }
    let folder = target().join("soak");
    if let Err(error) = python::put(&folder, "release") {
        return Outcome::Failed(format!("the package could not be put in place: {error}"));
    }
    let paths: [PathBuf; 2] = [folder, root().join("python")];
    let paths = match env::join_paths(&paths) {
        Ok(paths) => paths,
        Err(error) => return Outcome::Failed(format!("the path of the package: {error}")),
    };
    let typed = format!("python -m fuzz {}", words.join(" "));
    println!("$ PYTHONPATH={} {typed}", paths.to_string_lossy());
    let mut run = Process::new(python);
    run.args(["-m", "fuzz"]).args(words).env("PYTHONPATH", paths).current_dir(root());
    match run.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("`{typed}`: {status}")),
        Err(error) => Outcome::Failed(format!("`{typed}`: {error}")),
    }
}
