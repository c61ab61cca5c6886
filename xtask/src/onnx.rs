//! `cargo xtask onnx`: the cases of the `onnx` package, run on Tonnage.
//!
//! The package comes from where pip finds packages, into an environment of its own. Which cases fail, and why, is in
//! `python/tools/onnx_failures.txt`, a list that may only shrink.

use std::io;
use std::process::{Command, ExitCode};

use crate::Subcommand;
use crate::cargo::{Cargo, root, target};
use crate::python;
use crate::step::{self, CheckStep, StepOutcome};

/// The row of this command.
pub const COMMAND: Subcommand = Subcommand {
    name: "onnx",
    doc: "runs the cases of the onnx package on Tonnage, all or those with a word in their names",
    words: "[WORD ...]",
    run,
};

/// What the cases need.
const PACKAGES: [&str; 2] = ["onnx==1.23.*", "numpy"];

fn run(_words: &[String]) -> ExitCode {
    match step::run(&[CheckStep { name: "ONNX cases", run: all }], &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The cases of the command line.
fn all() -> StepOutcome {
    cases(&std::env::args().skip(2).collect::<Vec<_>>())
}

/// Every tenth case, for the test command.
pub fn slice() -> StepOutcome {
    cases(&["--slice".to_string()])
}

/// Builds, installs, runs.
fn cases(words: &[String]) -> StepOutcome {
    let built = Cargo::new("build --package tonnage-python").run();
    if let StepOutcome::Failed(_) | StepOutcome::Skipped(_) = built {
        return built;
    }
    let home = target().join("onnx");
    let python = match python::environment(&home, &PACKAGES) {
        Ok(python) => python,
        Err(why) => return StepOutcome::Skipped(why),
    };
    if let Err(error) = python::install(&python) {
        return StepOutcome::Failed(format!("the package could not be put in place: {error}"));
    }
    let script = root().join("python").join("tools").join("onnx_cases.py");
    match Command::new(&python).arg(script).args(words).current_dir(&home).status() {
        Ok(status) if status.success() => StepOutcome::Passed,
        Ok(status) => StepOutcome::Failed(format!("ONNX cases: {status}")),
        Err(error) => StepOutcome::Failed(format!("ONNX cases: {error}")),
    }
}
