//! `tonnage train` and `tonnage plan` as a user meets them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tonnage(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.args(args).current_dir(folder).env("XDG_CACHE_HOME", folder).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The word behind another.
fn after<'t>(text: &'t str, word: &str) -> &'t str {
    let rest = text.split_once(word).unwrap().1;
    rest.split([',', '\n', '%']).next().unwrap().trim()
}

#[test]
fn a_model_learns_digits_in_the_memory_that_was_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        said(&tonnage(folder.path(), &["train", "mlp", "--budget", "1MiB", "--epochs", "8"]));
    assert_eq!(after(&text, "predicted"), after(&text, "measured"), "{text}");
    let accuracy: f64 = after(&text, "accuracy").parse().unwrap();
    assert!(accuracy > 92.0, "{text}");
    let report = fs::read_to_string(folder.path().join("tonnage-report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["predicted_peak"], report["measured_peak"]);
    assert_eq!(report["losses"].as_array().unwrap().len(), 8);
    assert!(report["plan"]["peak"].is_number());
}

#[test]
fn a_plan_runs_nothing_and_a_budget_that_is_too_small_is_refused_with_the_least() {
    let folder = tempfile::tempdir().unwrap();
    let text = said(&tonnage(folder.path(), &["plan", "cnn", "--batch", "8"]));
    assert!(text.starts_with("peak ") && text.contains("conv"), "{text}");
    let no = refused(&tonnage(folder.path(), &["train", "mlp", "--budget", "10KiB"]), 1);
    assert!(no.contains("the least that would do is"), "{no}");
    let least = no.split_once("the least that would do is").unwrap().1;
    let least = least.split_once('(').unwrap().1.split(' ').next().unwrap();
    let args = ["train", "mlp", "--steps", "3", "--budget", least];
    let text = said(&tonnage(folder.path(), &args));
    assert_eq!(after(&text, "predicted"), after(&text, "measured"), "{text}");
}

#[test]
fn training_goes_on_from_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let args = ["train", "mlp", "--epochs", "2", "--checkpoint", "saved"];
        said(&tonnage(folder.path(), &[&args[..], more].concat()))
    };
    let whole = said(&tonnage(folder.path(), &["train", "mlp", "--epochs", "2"]));
    run(&["--steps", "30"]);
    let rest = run(&["--resume"]);
    assert_eq!(after(&whole, "accuracy"), after(&rest, "accuracy"));
}

#[test]
fn pictures_of_ones_own_are_learned_and_bad_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let train = |args: &[&str]| tonnage(path, &[&["train", "mlp", "--data", "."], args].concat());
    assert!(refused(&train(&[]), 2).contains("images.idx"));
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 4, 0, 0, 0, 5];
    images.extend((0..40 * 20).map(|i: u32| (i * 7 % 256) as u8));
    fs::write(path.join("images.idx"), &images).unwrap();
    fs::write(path.join("labels.idx"), [0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 2]).unwrap();
    assert!(refused(&train(&[]), 2).contains("as many labels"));
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0, 40];
    labels.extend((0..40).map(|i| i % 3));
    fs::write(path.join("labels.idx"), labels).unwrap();
    said(&train(&["--batch", "6", "--epochs", "1"]));
    assert!(refused(&train(&["--batch", "1000"]), 2).contains("batches of 1000 of 36 rows"));
    fs::write(path.join("images.idx"), &images[..50]).unwrap();
    assert!(refused(&train(&[]), 2).contains("damaged"));
    for bad in [["--budget", "much"], ["--optimizer", "magic"], ["--rate", "-1"], ["--batch", "0"]]
    {
        refused(&tonnage(path, &[&["train", "mlp"], &bad[..]].concat()), 2);
    }
}
