//! `mpirun tonnage train` as a user meets it: the bits of one process that accumulates, one voice, one end.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;
#[path = "../../tonnage/tests/common/open_mpi.rs"]
mod open_mpi;

use std::path::Path;
use std::process::{Command, Output};

use common::{said, tonnage};
use open_mpi::OpenMpi;
use tonnage::io::{RangedTensors, SafeTensors};
use tonnage::{Bytes, DType, Elementwise, Tensor};

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
    // What ranks saved, one process reads: the bits of what it saved itself.
    let (one, several) = (one.path().join("saved"), several.path().join("saved"));
    let whole = SafeTensors::open(one.join("step-000000030.safetensors")).unwrap();
    let record = std::fs::read(several.join("checkpoint.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let ranges = RangedTensors::open(several.join(record["file"].as_str().unwrap())).unwrap();
    assert!(whole.names().count() > 4 && whole.names().eq(ranges.names()));
    for name in whole.names() {
        let ty = whole.ty(name).unwrap();
        let count = ty.shape.sizes().unwrap().iter().product();
        let bits = |tensor: Tensor| -> Vec<u64> {
            let all = tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            all.iter().map(|x| x.to_bits()).collect()
        };
        let own = bits(ranges.read_range(name, 0..count).unwrap());
        assert!(ranges.ty(name).unwrap() == ty && own == bits(whole.read(name).unwrap()), "{name}");
    }
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

#[test]
fn an_interrupt_of_one_rank_stops_all_after_a_whole_step() {
    let folder = tempfile::tempdir().unwrap();
    // Rank 1 is interrupted as soon as rank 0 has told of a step.
    let run = "\"$0\" \"$@\" & own=$!; if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then \
               until grep -q step log.json 2>/dev/null; do :; done; kill -INT $own; fi; wait $own";
    let args = ["train", "mlp", "--batch", "16", "--epochs", "1000000", "--log", "log.json"];
    let mut command = Command::new("sh");
    command.args(["-c", run, env!("CARGO_BIN_EXE_tonnage")]).args(args);
    command.args(["--checkpoint", "saved"]).current_dir(folder.path());
    command.env("TONNAGE_THREADS", "1").env("XDG_CACHE_HOME", folder.path());
    let Some(made) = started(2, &mut command) else { return };
    let said = String::from_utf8_lossy(&made.stdout);
    assert!(!made.status.success(), "{made:?}");
    let words = "rank 1 was interrupted, all stopped after step ";
    assert_eq!(said.matches(words).count(), 1, "{made:?}");
    assert!(said.contains("`--resume` goes on from saved"), "{said}");
    // What is there is whole: one process goes on from it.
    let more = ["train", "mlp", "--batch", "16", "--accumulate", "2", "--steps", "1"];
    let resumed = ["--checkpoint", "saved", "--resume"];
    common::said(&tonnage(folder.path(), &[&more[..], &resumed[..]].concat()));
}
