//! The command as a user meets it.
#![allow(dead_code, reason = "no test binary uses all of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs it in a folder, where it finds nothing that other runs have left.
pub fn tonnage(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.args(args).current_dir(folder).env("XDG_CACHE_HOME", folder).output().unwrap()
}

/// What it printed, where it succeeded.
pub fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}
