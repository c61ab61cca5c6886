//! `tonnage train gpt` learns as the same model does in PyTorch: first parameters, order of rows and optimizer are the same, and so is the curve.

use std::fs;
use std::path::Path;
use std::process::Command;

fn losses(text: &str, column: usize) -> Vec<f64> {
    let lines = text.lines().skip(1);
    lines.map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect()
}

#[test]
fn the_loss_curve_of_gpt_is_that_of_pytorch() {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpt");
    let torch = losses(&fs::read_to_string(here.join("torch.csv")).unwrap(), 1);
    // As `curve.py` has them.
    let line =
        "train gpt --width 32 --layers 2 --length 32 --batch 8 --epochs 1 --seed 1 --log log.csv";
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.args(line.split(' ')).args(["--steps", &torch.len().to_string()]);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let own = losses(&fs::read_to_string(folder.path().join("log.csv")).unwrap(), 2);
    assert_eq!((own.len(), torch.len()), (200, 200));
    for (step, (own, torch)) in own.iter().zip(&torch).enumerate() {
        assert!((own / torch - 1.0).abs() < 0.02, "step {}: {own} and {torch}", step + 1);
    }
    // It has learned something by then.
    assert!(torch[199] < 0.75 * torch[0], "{} {}", torch[0], torch[199]);
}
