//! Metrics agree with plain counting over all batches at once, and keep none of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::metrics::{Accuracy, Auc, Binary, Mean, Metric, TopK};
use tonnage::{DType, RandomKey, Tensor, tensor};

use crate::common::{in_use, own_context};

const ROWS: usize = 700;
const CLASSES: usize = 6;

fn told(metric: &mut dyn Metric, said: &Tensor, truth: &Tensor) {
    let (said, truth) = (said.split(&[300, 1, 399], 0), truth.split(&[300, 1, 399], 0));
    for (said, truth) in said.unwrap().iter().zip(&truth.unwrap()) {
        metric.update(said, truth).unwrap();
    }
}

#[test]
fn classes_are_counted_over_all_batches() {
    let _context = own_context();
    let said = RandomKey::new(1).normal([ROWS, CLASSES], DType::F32).unwrap();
    let rows = said.to_vec2::<f32>().unwrap();
    let truth: Vec<i64> = (0..ROWS as i64).map(|i| i * i % CLASSES as i64).collect();
    let labels = tensor(truth.clone()).unwrap();
    let before = in_use();
    let larger = |row: &[f32], label: i64| row.iter().filter(|x| **x > row[label as usize]).count();
    for k in [1, 3] {
        let right = rows.iter().zip(&truth).filter(|(row, label)| larger(row, **label) < k).count();
        let mut top = TopK::new(k);
        told(&mut top, &said, &labels);
        assert_eq!(top.value(), right as f64 / ROWS as f64);
        if k == 1 {
            let mut accuracy = Accuracy::default();
            told(&mut accuracy, &said, &labels);
            assert_eq!(accuracy.value(), top.value());
            accuracy.reset();
            assert!(accuracy.value().is_nan());
        }
    }
    assert_eq!(in_use(), before, "no batch is kept");
    let error = Accuracy::default().update(&said, &said).unwrap_err().to_string();
    assert!(error.contains("[700, 6]"), "{error}");
}

#[test]
fn yes_and_no_are_counted_and_ranked() {
    let _context = own_context();
    let said = RandomKey::new(2).uniform([ROWS], DType::F32).unwrap();
    let scores = said.to_vec::<f32>().unwrap();
    let noise = RandomKey::new(3).uniform([ROWS], DType::F32).unwrap();
    let truth = said.greater(noise).unwrap();
    let yes = truth.to_vec::<bool>().unwrap();

    let mut binary = Binary::new(0.4);
    told(&mut binary, &said, &truth);
    let count = |said: bool, is: bool| {
        let cases = scores.iter().zip(&yes);
        cases.filter(|(score, yes)| (**score > 0.4) == said && **yes == is).count() as u64
    };
    let counted = [binary.right_yes, binary.wrong_yes, binary.right_no, binary.wrong_no];
    assert_eq!(
        counted,
        [count(true, true), count(true, false), count(false, false), count(false, true)]
    );
    let (p, r) = (binary.precision(), binary.recall());
    assert!((binary.value() - 2.0 * p * r / (p + r)).abs() < 1e-12);

    let mut auc = Auc::new(100_000);
    told(&mut auc, &said, &truth);
    let (mut right, mut pairs) = (0.0, 0.0);
    for (a, _) in scores.iter().zip(&yes).filter(|(_, yes)| **yes) {
        for (b, _) in scores.iter().zip(&yes).filter(|(_, yes)| !**yes) {
            pairs += 1.0;
            right += if a > b {
                1.0
            } else if a == b {
                0.5
            } else {
                0.0
            };
        }
    }
    assert!((auc.value() - right / pairs).abs() < 1e-4, "{} {}", auc.value(), right / pairs);
    let mut coarse = Auc::new(10);
    told(&mut coarse, &said, &truth);
    assert!((coarse.value() - right / pairs).abs() < 0.05);
    assert!(Auc::new(10).update(&tensor([1.5f32]).unwrap(), &tensor([true]).unwrap()).is_err());
    assert!(Auc::new(10).update(&tensor([f32::NAN]).unwrap(), &tensor([true]).unwrap()).is_err());
    let mut mean = Mean::default();
    mean.add(&said).unwrap();
    let plain = scores.iter().map(|x| f64::from(*x)).sum::<f64>() / ROWS as f64;
    assert!((mean.value() - plain).abs() < 1e-9);
}
