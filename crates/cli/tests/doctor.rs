//! `tonnage doctor` as a user meets it: a line for everything, and what to do for what is missing.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "../../tonnage/tests/common/open_mpi.rs"]
mod open_mpi;

use std::path::Path;
use std::process::{Command, Output};

use open_mpi::OpenMpi;

/// Runs it where caches and libraries are those of a folder.
fn doctor(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.arg("doctor").args(args).env("XDG_CACHE_HOME", folder).env("LD_LIBRARY_PATH", folder);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    output
}

fn text(folder: &Path) -> String {
    String::from_utf8(doctor(folder, &[]).stdout).unwrap()
}

fn json(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&doctor(folder, &["--json"]).stdout).unwrap()
}

/// The line that begins so.
fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let found = text.lines().find(|line| line.trim_start().starts_with(start));
    assert!(found.is_some(), "no line `{start}` in:\n{text}");
    found.unwrap()
}

/// What is missing, by the JSON.
fn missing(folder: &Path) -> Vec<String> {
    let json = json(folder);
    let all = json["missing"].as_array().unwrap().iter();
    all.map(|one| one["what"].as_str().unwrap().to_string()).collect()
}

#[test]
fn there_is_a_line_for_everything_that_the_json_has() {
    let folder = tempfile::tempdir().unwrap();
    let (said, json) = (text(folder.path()), json(folder.path()));
    for start in [
        "Tonnage ",
        "cores ",
        "vectors ",
        "matrix unit ",
        "memory ",
        "available ",
        "container limit ",
        "MPI library ",
    ] {
        line(&said, start);
    }
    assert!(line(&said, "devices ").contains("cpu:0"), "{said}");
    assert!(json["cores"].as_u64().unwrap() > 0);
    assert_eq!(line(&said, "cores ").split_whitespace().last(), Some(&*json["cores"].to_string()));
    assert!(line(&said, "vectors ").contains(json["vectors"].as_str().unwrap()), "{said}");
    assert!([16, 32, 64].contains(&json["vector_bytes"].as_u64().unwrap()), "{json}");
    assert_eq!(json["devices"][0], "cpu:0");
}

#[test]
fn an_mpi_library_is_told_with_its_version_or_with_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    // It is no library at all.
    let file = folder.path().join("libmpi.so.40");
    std::fs::write(&file, "not a library").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    let output = command.arg("doctor").env("TONNAGE_MPI", &file).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(line(&said, "MPI library").contains("none found"), "{said}");
    assert!(line(&said, "mpi ").contains(&format!("({})", file.display())), "{said}");
    assert!(line(&said, "ranks").ends_with(" 1"), "{said}");
    let mpi = match OpenMpi::find() {
        Ok(mpi) => mpi,
        Err(why) => {
            println!("SKIPPED the ranks of doctor: no Open MPI ({why})");
            return;
        }
    };
    let output = mpi.run(2, Command::new(env!("CARGO_BIN_EXE_tonnage")).arg("doctor"));
    let said = String::from_utf8(output.stdout).unwrap();
    let found = line(&said, "MPI library");
    let is_told = found.contains(": Open MPI v") && found.ends_with("handles of Open MPI");
    assert!(is_told && found.contains("libmpi.so.40"), "{said}");
    assert!(line(&said, "ranks").ends_with(" 2"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("  mpi ")), "{said}");
}

#[test]
fn figures_of_the_machine_are_missing_until_they_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let calibration = || json(folder.path())["calibration"].clone();
    assert_eq!(calibration()["state"], "none");
    assert!(missing(folder.path()).contains(&"calibration".into()));
    let said = text(folder.path());
    assert!(said.contains("run `tonnage calibrate`"), "{said}");
    assert_eq!(line(&said, "calibration ").split_whitespace().last(), Some("file"));
    let mut calibrate = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    let calibrate = calibrate.arg("calibrate").env("XDG_CACHE_HOME", folder.path());
    assert!(calibrate.output().unwrap().status.success());
    assert_eq!(calibration()["state"], "used");
    assert!(calibration()["figures"]["flops"].as_f64().unwrap() > 0.0);
    assert!(!missing(folder.path()).contains(&"calibration".into()));
    assert!(line(&text(folder.path()), "calibration ").contains("GFLOP/s"));
}

#[test]
fn a_file_of_another_machine_or_none_at_all_is_told_apart_from_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tonnage/machine.txt");
    std::fs::create_dir(folder.path().join("tonnage")).unwrap();
    for (content, state, said) in [
        ("tonnage machine 2\n", "other", "not of this machine"),
        ("{\"tonnage machine\": 99}", "other", "not of this machine"),
        ("\u{1} not figures", "unusable", "is ignored"),
    ] {
        std::fs::write(&file, content).unwrap();
        assert_eq!(json(folder.path())["calibration"]["state"], state, "{content}");
        assert!(line(&text(folder.path()), "calibration ").contains(said), "{content}");
        assert!(missing(folder.path()).contains(&"calibration".into()), "{content}");
    }
}
