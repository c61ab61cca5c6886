//! What `plan` and `explain` say is what `train` then predicts: every model, optimizer, number of batches in a step, and budget.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{said, tonnage};
use tonnage::Bytes;

const MODELS: [&str; 5] = [
    "mlp --batch 16",
    "cnn --batch 16",
    "gpt --width 16 --length 16 --layers 1 --batch 8",
    "gru --width 16 --length 16 --batch 8",
    "recommender --batch 64",
];
const OPTIMIZERS: [&str; 9] =
    ["momentum", "sgd", "adam", "adamw", "adam8bit", "adagrad", "rmsprop", "adafactor", "lion"];
const PARTS: [usize; 3] = [2, 3, 1];

/// The bytes that would do, from an error about a budget that does not.
fn least(folder: &Path, job: &str) -> u64 {
    let line = format!("plan {job} --budget 1KiB");
    let output = tonnage(folder, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1), "{line}");
    let text = String::from_utf8(output.stderr).unwrap();
    let least = text.split_once("the least that would do is").unwrap().1;
    least.split_once('(').unwrap().1.split(' ').next().unwrap().parse().unwrap()
}

/// Plans, explains and trains; what it took.
fn check(folder: &Path, job: &str, budget: Option<u64>) -> u64 {
    let job = budget.map_or(job.to_string(), |budget| format!("{job} --budget {budget}"));
    let ran = |line: String| said(&tonnage(folder, &line.split(' ').collect::<Vec<_>>()));
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let planned = ran(format!("plan {job}"));
    let explained = ran(format!("explain {job} --save plan.json"));
    let trained = ran(format!("train {job} --steps 2"));
    let report = json("tonnage-report.json");
    let predicted = report["predicted_peak"].as_u64().unwrap();
    let said = format!("peak {}:", Bytes::new(predicted));
    assert!(planned.starts_with(&said), "{job}: {said} {planned}");
    assert!(explained.starts_with(&said), "{job}: {said} {explained}");
    assert!(trained.contains(&format!("predicted {},", Bytes::new(predicted))), "{job}: {trained}");
    assert_eq!(json("plan.json")["peak"]["bytes"].as_u64(), Some(predicted), "{job}");
    assert_eq!(report["plan"]["peak"].as_u64(), Some(predicted), "{job}");
    let measured = report["measured_peak"].as_u64().unwrap();
    assert_eq!(measured, predicted, "{job}");
    assert!(budget.is_none_or(|budget| predicted <= budget), "{job}: {predicted}");
    predicted
}

#[test]
fn soak_plan_and_explain_say_what_train_predicts() {
    let folder = tempfile::tempdir().unwrap();
    let all = std::env::var_os("TONNAGE_SOAK").is_some();
    let mut number = 0;
    for model in MODELS {
        for optimizer in OPTIMIZERS {
            for parts in PARTS {
                number += 1;
                // Each model with several optimizers, and each optimizer with several models and numbers of batches.
                if !all && number % 13 != 2 {
                    continue;
                }
                let job = format!("{model} --optimizer {optimizer} --accumulate {parts}");
                let free = check(folder.path(), &job, None);
                let least = least(folder.path(), &job);
                for share in 0..if all { 8 } else { 2 } {
                    let budget = least + (free - least.min(free)) * share / if all { 8 } else { 2 };
                    check(folder.path(), &job, Some(budget));
                }
            }
        }
    }
}
