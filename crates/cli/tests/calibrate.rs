//! `tonnage calibrate` as a user meets it: figures are measured once, saved, and found again by later processes.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

fn calibrate(caches: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    let command = command.arg("calibrate").args(args).env("XDG_CACHE_HOME", caches);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// The first column of figures.
fn figures(output: &Output) -> Vec<f64> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let column = |line: &str| line[26..39].trim().parse().unwrap();
    text.lines().skip(1).map(column).collect()
}

fn notices(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const BUILT_IN: [f64; 8] = [150.0, 20.0, 1.0, 6.0, 500.0, 2000.0, 1000.0, 10.0];

#[test]
fn figures_are_saved_for_later_processes_until_they_are_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let before = calibrate(folder.path(), &["--show"]);
    assert_eq!((figures(&before), notices(&before)), (BUILT_IN.to_vec(), String::new()));
    let measured = figures(&calibrate(folder.path(), &[]));
    assert!(measured != BUILT_IN && measured.iter().all(|f| *f > 0.0), "{measured:?}");
    assert_eq!(figures(&calibrate(folder.path(), &["--show"])), measured);
}

#[test]
fn a_file_that_cannot_be_used_is_ignored_with_one_notice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tonnage/machine.txt");
    std::fs::create_dir(folder.path().join("tonnage")).unwrap();
    std::fs::write(&file, "\u{1}\u{2} not figures").unwrap();
    let shown = calibrate(folder.path(), &["--show"]);
    assert_eq!(figures(&shown), BUILT_IN);
    let said = notices(&shown);
    assert!(said.contains("machine.txt is ignored") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_folder_that_cannot_be_written_is_a_notice_and_the_figures_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    std::fs::write(&file, "").unwrap();
    let output = calibrate(&file, &[]);
    assert_eq!(figures(&output).len(), BUILT_IN.len());
    assert!(notices(&output).contains("could not be written"), "{}", notices(&output));
}
