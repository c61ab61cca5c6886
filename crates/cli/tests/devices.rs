//! `--device`: where a job runs, and a card that it is only planned for.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::Path;

use common::{said, tonnage};

fn ran(folder: &Path, line: &str) -> String {
    said(&tonnage(folder, &line.split(' ').collect::<Vec<_>>()))
}

fn refused(folder: &Path, line: &str) -> String {
    let made = tonnage(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(!made.status.success(), "{line}");
    String::from_utf8(made.stderr).unwrap()
}

#[test]
fn training_evaluation_and_text_on_a_device_are_those_of_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let learned = |device: &str| {
        let checkpoint = format!("--checkpoint {}", device.replace(':', "-"));
        let line = format!("train gru --steps 3 --device {device} {checkpoint}");
        let text = ran(folder.path(), &line);
        let of = |line: &str| ran(folder.path(), &format!("{line} --device {device} {checkpoint}"));
        let loss = text.lines().find(|line| line.contains("held out")).unwrap().to_string();
        (loss, of("eval"), of("sample --characters 20"))
    };
    assert_eq!(learned("cpu:0"), learned("sim:0"));
}

#[test]
fn a_card_that_is_not_here_is_planned_for_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ran(folder.path(), "plan mlp --device h200");
    assert!(plan.starts_with("peak 172.00 KiB on NVIDIA H200: inputs 123.00 KiB, arena"), "{plan}");
    assert!(!plan.contains("on the host"), "{plan}");
    let plan = ran(folder.path(), "plan cnn --device h200");
    assert!(!plan.contains("on the host"), "{plan}");
    let explained = ran(folder.path(), "explain mlp --device rtx4090");
    assert!(explained.contains("on NVIDIA GeForce RTX 4090"), "{explained}");
    let over = refused(folder.path(), "plan mlp --device a100 --budget 100KiB");
    assert!(over.contains("in use on cuda:0"), "{over}");
}

#[test]
fn logits_of_gpt_2_are_in_pieces_where_memory_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let words = "all that is read is one line, over and over again. ".repeat(2_000);
    std::fs::write(folder.path().join("text.txt"), words).unwrap();
    let line = "plan gpt --preset gpt2-124m --device h200 --batch 64 --data text.txt --budget 6GiB";
    let plan = ran(folder.path(), line);
    assert!(plan.contains("1 segment in pieces"), "{plan}");
    assert!(plan.contains("of its 6.14 GiB exist at once"), "{plan}");
    assert!(!plan.contains("GiB spilled"), "{plan}");
}

#[test]
fn what_cannot_be_had_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(folder.path(), "train mlp --steps 1 --device h200");
    assert!(error.contains("there is no device `h200`"), "{error}");
    let error = refused(folder.path(), "plan mlp --device abacus");
    assert!(error.contains("there is no device `abacus`"), "{error}");
}
