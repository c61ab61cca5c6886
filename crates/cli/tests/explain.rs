//! `tonnage explain` and the page that `tonnage train` leaves, as a user meets them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fs;

use common::{said, tonnage};

#[test]
fn a_step_is_explained_with_a_chart_and_saved_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["a.html", "a.csv", "a.json", "a.trace.json", "a.pb.gz"];
    let mut args = vec!["explain", "mlp", "--budget", "1MiB"];
    files.iter().for_each(|file| args.extend(["--save", file]));
    let text = said(&tonnage(folder.path(), &args));
    for part in ["by kind:", "by layer:", "1.dense", "at the peak", "budget 1.00 MiB"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // No colours where nobody looks, and the chart fits a terminal.
    assert!(!text.contains('\x1b'), "{text}");
    let chart: Vec<&str> = text.lines().filter(|line| line.contains(['┤', '└'])).collect();
    assert!(chart.len() > 10 && chart.iter().all(|line| line.chars().count() <= 80), "{text}");
    for file in files {
        assert!(!fs::read(folder.path().join(file)).unwrap().is_empty(), "{file}");
    }
    let no = tonnage(folder.path(), &["explain", "mlp", "--save", "a.txt"]);
    assert_eq!(no.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&no.stderr).contains("end its name in .csv"), "{no:?}");
}

#[test]
fn a_step_is_planned_that_takes_more_rows_than_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let planned = |line: &str| tonnage(folder.path(), &line.split(' ').collect::<Vec<_>>());
    for (line, rows) in [
        ("plan gpt --width 16 --layers 1 --length 20000 --batch 4", "400001 characters"),
        ("plan gpt --width 16 --layers 1 --length 1024 --batch 64", "64 rows"),
        ("plan mlp --batch 100000 --accumulate 2", "200000 rows"),
        ("explain recommender --batch 1000000", "1000000 rows"),
    ] {
        let output = planned(line);
        assert!(said(&output).starts_with("peak "), "{line}: {output:?}");
        let note = String::from_utf8_lossy(&output.stderr);
        assert!(note.contains(rows), "{line}: {note}");
    }
    let whole = said(&planned("plan mlp --batch 1000"));
    let more = said(&planned("plan mlp --batch 2000"));
    assert_ne!(whole, more);
    let train = planned("train mlp --batch 100000");
    assert!(String::from_utf8_lossy(&train.stderr).contains("batches of 100000 of"), "{train:?}");
}

#[test]
fn training_leaves_a_page_also_where_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let text = said(&tonnage(folder.path(), &["train", "mlp", "--epochs", "1"]));
    assert!(text.contains("tonnage-report.html"), "{text}");
    let page = fs::read_to_string(folder.path().join("tonnage-report.html")).unwrap();
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    assert!(page.contains("\"title\":\"run\"") && page.contains("\"failed\":null"));
    // A rate that no number survives.
    let args = ["train", "mlp", "--epochs", "1", "--optimizer", "sgd", "--rate", "1e30"];
    let failed = tonnage(folder.path(), &args);
    assert!(!failed.status.success());
    let page = fs::read_to_string(folder.path().join("tonnage-report.html")).unwrap();
    assert!(page.contains("the loss of step"), "it says why and shows how far it came");
}
