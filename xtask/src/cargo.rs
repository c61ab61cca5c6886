//! Calls of cargo: always at the workspace root, printed as they would be typed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::StepOutcome;

/// One call of cargo, before it runs.
pub struct Cargo {
    command: Command,
    /// What a person would type to run the same thing alone.
    typed: String,
}

impl Cargo {
    /// `cargo` with these words, split at blanks.
    ///
    /// It is the `cargo` on the path and not the one in `$CARGO`: only rustup's understands
    /// `+nightly`.
    pub fn new(words: &str) -> Cargo {
        let mut command = Command::new("cargo");
        command.args(words.split_whitespace()).current_dir(root());
        Cargo { command, typed: format!("cargo {words}") }
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Cargo {
        self.command.env(name, value);
        let quote = if value.contains(' ') { "\"" } else { "" };
        self.typed = format!("{name}={quote}{value}{quote} {}", self.typed);
        self
    }

    /// Runs it with its output on the terminal.
    pub fn run(mut self) -> StepOutcome {
        println!("$ {}", self.typed);
        match self.command.status() {
            Ok(status) if status.success() => StepOutcome::Passed,
            Ok(status) => StepOutcome::Failed(format!("`{}`: {status}", self.typed)),
            Err(error) => StepOutcome::Failed(format!("`{}`: {error}", self.typed)),
        }
    }

    /// Runs it quietly: what it printed, or `None` where it failed or could not start.
    pub fn stdout(mut self) -> Option<String> {
        let output = self.command.output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The directory of the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where builds go: `target`, unless the environment says otherwise.
pub fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}
