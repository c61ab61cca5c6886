//! `cargo xtask keras`: Keras' own tests, run on Tonnage in place of TensorFlow.
//!
//! Keras comes from where pip finds packages, into an environment of its own, with its tests in it: the version is the one that the list
//! of failures was written for. Which tests fail, and why, is in `python/tools/keras_failures.txt`, a list that may only shrink; of those that
//! pass on TensorFlow 96% have to pass. The test command runs one in twenty, in the environment of the Python tests, so that nothing more is
//! installed.

use std::io;
use std::process::{Command, ExitCode};

use crate::Subcommand;
use crate::cargo::{Cargo, root, target};
use crate::python;
use crate::step::{self, CheckStep, StepOutcome};

/// The row of this command.
pub const COMMAND: Subcommand = Subcommand {
    name: "keras",
    doc: "runs the tests of Keras itself on Tonnage, all or those of some folders",
    words: "[FOLDER ...]",
    run,
};

/// What Keras' tests import.
const PACKAGES: [&str; 9] = [
    "absl-py",
    "h5py",
    "keras==3.15.1",
    "numpy",
    "pandas",
    "pillow",
    "pytest",
    "requests",
    "scipy",
];

fn run(_words: &[String]) -> ExitCode {
    match step::run(&[CheckStep { name: "Keras' tests", run: suites }], &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The folders of the command line.
fn suites() -> StepOutcome {
    // Asked for by name: not to run is to fail.
    let words = std::env::args().skip(2).collect::<Vec<_>>();
    run_suites("keras", &PACKAGES, &words, StepOutcome::Failed)
}

/// One in twenty tests, for the test command.
pub fn slice() -> StepOutcome {
    run_suites("python", &python::PACKAGES, &["--slice".to_string()], StepOutcome::Skipped)
}

/// Builds, installs, runs; `missing` is what it is not to have the packages.
fn run_suites(
    home: &str,
    packages: &[&str],
    words: &[String],
    missing: fn(String) -> StepOutcome,
) -> StepOutcome {
    let built = Cargo::new("build --package tonnage-python").run();
    if let StepOutcome::Failed(_) | StepOutcome::Skipped(_) = built {
        return built;
    }
    let home = target().join(home);
    let python = match python::environment(&home, packages) {
        Ok(python) => python,
        Err(why) => return missing(why),
    };
    if let Err(error) = python::install(&python) {
        return StepOutcome::Failed(format!("the package could not be put in place: {error}"));
    }
    let script = root().join("python").join("tools").join("keras_suites.py");
    match Command::new(&python).arg(script).args(words).current_dir(&home).status() {
        Ok(status) if status.success() => StepOutcome::Passed,
        Ok(status) => StepOutcome::Failed(format!("Keras' tests: {status}")),
        Err(error) => StepOutcome::Failed(format!("Keras' tests: {error}")),
    }
}
