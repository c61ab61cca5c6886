//! `mpirun tonnage train` as a user meets it: the bits of one process that accumulates, one voice, one end.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;
#[path = "../../tonnage/tests/common/open_mpi.rs"]
mod open_mpi;

use std::path::Path;
use std::process::{Command, Output};

use common::{said, tonnage};
use open_mpi::OpenMpi;
use tonnage::Bytes;

/// Runs it on so many ranks, in a folder; nothing where there is no MPI.
fn on_ranks(ranks: usize, folder: &Path, args: &[&str]) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.args(args).current_dir(folder).env("TONNAGE_THREADS", "1");
    started(ranks, command.env("XDG_CACHE_HOME", folder))
}

fn started(ranks: usize, command: &mut Command) -> Option<Output> {
    match OpenMpi::find() {
        Ok(mpi) => Some(mpi.run(ranks, command)),
        Err(why) => {
            println!("SKIPPED training on ranks: no Open MPI ({why})");
            None
        }
    }
}

/// What the report holds that training decides.
fn learned(folder: &Path) -> [serde_json::Value; 4] {
    let report = std::fs::read(folder.join("tonnage-report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    ["losses", "loss", "accuracy", "steps"].map(|name| report[name].clone())
}

#[test]
fn ranks_learn_what_one_process_learns_that_accumulates() {
    let (one, several) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let common = ["train", "mlp", "--batch", "16", "--steps", "30", "--checkpoint", "saved"];
    let more = ["--timeout", "60"];
    let args = [&common[..], &more[..]].concat();
    let Some(made) = on_ranks(3, several.path(), &args) else { return };
    let text = said(&made);
    assert_eq!(text.matches("learned ").count(), 1, "one rank speaks: {text}");
    said(&tonnage(one.path(), &[&common[..], &["--accumulate", "3"]].concat()));
    assert_eq!(learned(one.path()), learned(several.path()));
    let tensors = |folder: &Path| std::fs::read(folder.join("saved/step-000000030.safetensors"));
    assert!(tensors(one.path()).unwrap() == tensors(several.path()).unwrap());
}

#[test]
fn what_cannot_start_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = on_ranks(2, folder.path(), &["train", "mlp", "--budget", "1KiB"]) else {
        return;
    };
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(!made.status.success());
    assert_eq!(said.matches("1.00 KiB").count(), 1, "{said}");
    let args = ["train", "mlp", "--timeout", "0"];
    let alone = tonnage(folder.path(), &args);
    let said = String::from_utf8_lossy(&alone.stderr);
    assert!(said.contains("`--timeout 0`: give at least 1"), "{said}");
}

#[test]
fn a_rank_without_a_library_says_what_was_looked_for() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.args(["train", "mlp"]).env("TONNAGE_MPI", "/nowhere/libmpi.so");
    let Some(made) = started(2, &mut command) else { return };
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(!made.status.success());
    let words = "join: a launcher started this process as a rank, and no MPI library can be loaded: /nowhere/libmpi.so";
    assert!(said.contains(words) && said.contains("TONNAGE_MPI"), "{said}");
}

#[test]
fn a_job_is_planned_for_ranks_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["plan", "explain"] {
        let made = tonnage(folder.path(), &[command, "gpt", "--ranks", "1000"]);
        let text = said(&made);
        let of = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().map(str::to_string).collect::<Vec<_>>()
        };
        let all = ["replicas", "state sharded", "gradients too", "weights too"].map(of);
        assert!(all.iter().all(|figures| figures.len() == 5), "{all:?}");
        let bytes = |figures: &[String], at: usize| -> Bytes {
            format!("{}{}", figures[at], figures[at + 1]).parse().unwrap()
        };
        let [replicas, state, _, weights] = &all;
        assert!(bytes(state, 0) < bytes(replicas, 0), "{text}");
        assert!(bytes(weights, 0) <= bytes(state, 0), "{text}");
        assert!(bytes(state, 2) > bytes(replicas, 2), "{text}");
    }
    let refused = tonnage(folder.path(), &["train", "mlp", "--ranks", "4"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("mpirun -n 4"));
}

#[test]
fn the_network_is_measured_under_mpirun_and_planned_with() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = on_ranks(2, folder.path(), &["calibrate"]) else { return };
    let shown = |made: &Output| {
        let text = said(made);
        let line = |name: &str| {
            text.lines().find(|line| line.starts_with(name)).unwrap()[26..39].to_string()
        };
        ["MB/s, to other ranks", "microseconds, a message"].map(line)
    };
    let measured = shown(&made);
    assert_ne!(measured, ["     1000.00 ", "       10.00 "]);
    let Some(again) = on_ranks(2, folder.path(), &["calibrate", "--show"]) else { return };
    assert_eq!(shown(&again), measured, "what was saved");
    assert_eq!(said(&made).matches("GFLOP/s").count(), 1, "one rank speaks");
}
