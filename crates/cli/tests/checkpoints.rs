//! Folders of checkpoints that `tonnage train` writes: when processes are killed, when two want one folder, when bytes change, when training is over.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{said, tonnage};

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn ran(folder: &Path, line: &str) -> String {
    said(&tonnage(folder, &words(line)))
}

fn refused(folder: &Path, line: &str) -> String {
    let output = tonnage(folder, &words(line));
    assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Training that is under way: some checkpoints are there.
fn training(folder: &Path) -> Child {
    // What the one before has left, but for this: it tells when there is a new one.
    let record = folder.join("saved/checkpoint.json");
    let _ = fs::remove_file(&record);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.args(words("train mlp --epochs 1000000 --batch 800 --checkpoint saved"));
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    while !record.exists() {
        std::thread::yield_now();
    }
    child
}

#[test]
fn a_second_process_is_told_who_trains_here_and_what_a_killed_one_left_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let again = "train mlp --epochs 3 --batch 800 --checkpoint saved";
    for _ in 0..3 {
        let mut child = training(path);
        for line in [again.to_string(), format!("{again} --resume")] {
            let text = refused(path, &line);
            assert!(text.contains(&format!("process {},", child.id())), "{text}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // Steps of the killed ones may be far ahead of these.
    fs::write(path.join("saved/step-009999999.safetensors"), "left").unwrap();
    ran(path, again);
    let record = fs::read_to_string(path.join("saved/checkpoint.json")).unwrap();
    for name in names(&path.join("saved")) {
        let is_known = ["checkpoint.json", "model.json"].contains(&name.as_str());
        assert!(is_known || record.contains(&format!("\"{name}\"")), "{name} is left: {record}");
    }
}

#[test]
fn a_byte_that_changes_in_any_file_of_a_checkpoint_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let train = "train recommender --width 2 --batch 2000 --epochs 1 --checkpoint saved";
    ran(path, train);
    let before = ran(path, "eval --checkpoint saved");
    let files = names(&path.join("saved"));
    assert_eq!(files.len(), 3, "{files:?}");
    for name in files {
        let file = path.join("saved").join(&name);
        let good = fs::read(&file).unwrap();
        // In the length of the header, the header, the first tensor, the last; of a text: a key, a value, the end.
        for offset in [2, 9, 40, good.len() / 2, good.len() - 4] {
            let mut bad = good.clone();
            bad[offset] ^= 4;
            fs::write(&file, &bad).unwrap();
            for line in ["eval --checkpoint saved", &format!("{train} --resume")] {
                let output = tonnage(path, &words(line));
                let text = String::from_utf8(output.stderr).unwrap();
                // What only training goes on from is not read to evaluate.
                let is_used = line.starts_with("train") || !name.ends_with("safetensors");
                assert!(output.status.code() == Some(2) || !is_used, "{line}, {name}, {offset}");
                if output.status.code() == Some(2) {
                    assert!(text.contains(&name), "{line}, {name}, {offset}: {text}");
                } else {
                    assert_eq!(String::from_utf8(output.stdout).unwrap(), before);
                }
            }
            fs::write(&file, &good).unwrap();
        }
    }
    assert_eq!(ran(path, "eval --checkpoint saved"), before);
}

#[test]
fn resuming_training_that_is_over_keeps_the_best_checkpoint_and_measures_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let train = "train mlp --batch 100 --epochs 2 --checkpoint saved";
    ran(path, train);
    let record = || -> serde_json::Value {
        serde_json::from_slice(&fs::read(path.join("saved/checkpoint.json")).unwrap()).unwrap()
    };
    let before = record();
    assert!(before["best"][1].is_number(), "{before}");
    for _ in 0..2 {
        let text = ran(path, &format!("{train} --resume"));
        assert!(text.contains("nothing was left to learn after 32 steps"), "{text}");
        assert!(text.contains("not measured: no step was made"), "{text}");
        assert_eq!(record(), before);
        let report = fs::read(path.join("tonnage-report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert!(report["measured_peak"].is_null() && report["predicted_peak"].is_number());
    }
    // A worse one does not become the best.
    ran(path, "train mlp --batch 100 --epochs 3 --rate 10 --checkpoint saved --resume");
    assert_eq!(record()["best"], before["best"]);
}
