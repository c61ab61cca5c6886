//! `tonnage train gpt` learns as the same model does in PyTorch: first parameters, order of rows and optimizer are the same, and so is the curve.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{said, tonnage};

fn column(text: &str, number: usize) -> Vec<f64> {
    let lines = text.lines().skip(1);
    lines.map(|line| line.split(',').nth(number).unwrap().parse().unwrap()).collect()
}

#[test]
fn the_loss_curve_of_gpt_is_that_of_pytorch() {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpt");
    let torch = fs::read_to_string(here.join("torch.csv")).unwrap();
    // As `curve.py` has them.
    let line = "train gpt --width 32 --layers 2 --length 32 --batch 8 --epochs 1 --steps 200 --seed 1 --log log.csv";
    said(&tonnage(folder.path(), &line.split(' ').collect::<Vec<_>>()));
    let own = column(&fs::read_to_string(folder.path().join("log.csv")).unwrap(), 2);
    // Adam as it is usual there moves rows that no batch reads; Adam for rows does what is done here.
    for (number, most) in [(1, 0.02), (2, 0.0003)] {
        let torch = column(&torch, number);
        assert_eq!((own.len(), torch.len()), (200, 200));
        for (step, (own, torch)) in own.iter().zip(&torch).enumerate() {
            assert!((own / torch - 1.0).abs() < most, "step {}: {own} and {torch}", step + 1);
        }
        // It has learned something by then.
        assert!(torch[199] < 0.75 * torch[0], "{} {}", torch[0], torch[199]);
    }
}
