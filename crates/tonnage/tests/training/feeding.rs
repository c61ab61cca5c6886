//! What training is fed: pipelines of batches, counted and gone on with to the same bits; and gradients of several batches, which stay rows where they are.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::data::{Dataset, Feed, Pipeline};
use tonnage::nn::{Activation, Apply, Dense, Embedding, Parameters, Sequential};
use tonnage::optim::{Adafactor, LossScale, Optimizer};
use tonnage::train::{Checkpoints, Fit, Go, History, Progress};
use tonnage::{Bytes, DType, Elementwise, RandomKey, Tensor, range, set_seed, tensor, zeros};

use crate::common::{Folder, in_use, own_context};

/// Points, and on which side of a line they lie.
fn points(rows: usize) -> Dataset<(Tensor, Tensor)> {
    let x = RandomKey::new(3).normal([rows, 2], DType::F32).unwrap();
    let y = x.sum(1).unwrap().greater(0.0).unwrap().cast(DType::I64).unwrap();
    let all = range(0i64, rows as i64, 1).unwrap();
    Dataset::of(Dataset::of((x, y)).unwrap().rows(&all).unwrap()).unwrap()
}

fn model() -> Sequential {
    Sequential::new().then(Dense::new(16)).then(Activation::Tanh).then(Dense::new(2))
}

fn loss(logits: &Tensor, labels: &Tensor) -> tonnage::Result<Tensor> {
    logits.sparse_cross_entropy(labels)
}

fn values(model: &Sequential) -> Vec<Vec<f32>> {
    let all = model.parameters();
    all.iter().map(|p| p.variable.read().unwrap().to_vec().unwrap()).collect()
}

/// Threads of pipelines give up what they hold when they notice that nobody listens.
fn settled(before: Bytes) {
    while in_use() != before {
        std::thread::yield_now();
    }
}

fn batches(data: &Dataset<(Tensor, Tensor)>) -> Pipeline<(Tensor, Tensor)> {
    Pipeline::rows(data)
        .shuffle(40, RandomKey::new(5))
        .parallel_map(2, |(x, y): (Tensor, Tensor)| Ok((x.mul(1.5)?, y)))
        .batch(32)
        .prefetch(2)
}

#[test]
fn a_pipeline_is_learned_from_in_the_memory_predicted() {
    let _context = own_context();
    let before = in_use();
    {
        set_seed(1);
        let data = points(330);
        let (model, optimizer) = (model(), Optimizer::adam(0.02));
        let fit = Fit::new(6, 32);
        let feed = batches(&data);
        assert_eq!(fit.steps(&feed), None);
        let predicted = fit.predict(&model, &optimizer, &feed, loss).unwrap().peak();
        let mut steps = 0;
        let after = |progress: &Progress| {
            steps = progress.position.step;
            Go::On
        };
        let history = fit.run(&model, &optimizer, &feed, loss, after).unwrap();
        assert_eq!((history.predicted, history.measured), (predicted, predicted));
        // The 10 rows that are left each time make no batch.
        assert_eq!((steps, history.position.epoch), (60, 6));
        assert!(history.losses[5] < 0.6 * history.losses[0], "{:?}", history.losses);
        let holds = feed.holds().unwrap();
        assert_eq!(history.data, holds.iter().map(|one| one.bytes).sum());
        let steps: Vec<&str> = holds.iter().map(|one| one.step).collect();
        assert_eq!(steps, ["shuffle", "parallel_map, given", "parallel_map", "batch", "prefetch"]);
    }
    settled(before);
}

#[test]
fn training_on_a_pipeline_goes_on_to_the_same_bits() {
    let _context = own_context();
    let folder = Folder::new("fed");
    let data = points(330);
    let trained = |stop: Option<u64>, checkpoints: Option<Checkpoints>, resume: bool| {
        set_seed(9);
        let (model, optimizer) = (model(), Optimizer::adam(0.01));
        // Of ten batches the last makes no step.
        let mut fit = Fit::new(3, 32).accumulate(3);
        if let Some(checkpoints) = checkpoints {
            fit = fit.checkpoints(checkpoints, 1);
        }
        if resume {
            fit = fit.resume();
        }
        let after = |p: &Progress| match stop {
            Some(step) if p.position.step == step => Go::Stop,
            _ => Go::On,
        };
        // One of its own, as after a restart.
        let history = fit.run(&model, &optimizer, &batches(&data), loss, after).unwrap();
        (values(&model), history.position, optimizer.steps().unwrap())
    };
    let whole = trained(None, None, false);
    // In the first epoch, in the middle of the second, and at its very end.
    for stop in [2, 5, 6] {
        let checkpoints = || Some(Checkpoints::new(folder.0.join(stop.to_string())));
        assert_eq!(trained(Some(stop), checkpoints(), false).1.step, stop);
        assert_eq!(trained(None, checkpoints(), true), whole, "{stop}");
    }
}

#[test]
fn what_data_hold_is_part_of_the_budget() {
    let _context = own_context();
    let data = points(128);
    let feed = || Pipeline::rows(&data).shuffle(100, RandomKey::new(5)).batch(32);
    let held: Bytes = feed().holds().unwrap().iter().map(|one| one.bytes).sum();
    let run = |budget: Bytes| {
        let fit = Fit::new(1, 32).budget(budget.into());
        fit.run(&model(), &Optimizer::sgd(0.1), &feed(), loss, |_| Go::On)
    };
    let error = run(held).unwrap_err();
    let tonnage::ErrorKind::OverBudget { least: Some(least), budget, .. } = error.kind() else {
        panic!("{error}");
    };
    assert!(*budget == held && *least > held, "{error}");
    assert!(error.to_string().contains("of data held beside it"), "{error}");
    let history = run(*least).unwrap();
    assert_eq!(history.measured, history.predicted);
    assert_eq!(history.predicted + history.data, *least);
    assert!(run(*least - Bytes::new(1)).is_err());
}

#[test]
fn pipelines_that_cannot_be_learned_from_are_refused() {
    let _context = own_context();
    let before = in_use();
    {
        let run = |feed: Pipeline<(Tensor, Tensor)>| {
            let made = Fit::new(2, 8).run(&model(), &Optimizer::sgd(0.1), &feed, loss, |_| Go::On);
            made.unwrap_err().to_string()
        };
        let data = points(64);
        let rows = || Pipeline::rows(&data);
        assert!(run(rows().take(0).batch(8)).contains("a pipeline that gives nothing"));
        let other = run(rows().batch(16));
        assert!(
            other.contains("f32[16, 2]") && other.contains("8 rows are learned from"),
            "{other}"
        );
        let uneven = Pipeline::interleave(vec![rows().take(12).batch(8), rows().batch(8)]);
        assert!(run(uneven).contains("only the last may have fewer"));
        let bad = |(x, y): (Tensor, Tensor)| Ok((x.reshape([7])?, y));
        assert!(run(rows().map(bad).batch(8)).contains("[7]"));
        let apart = rows().map(|(x, _): (Tensor, Tensor)| Ok((x, zeros([3])?))).batch(8);
        assert!(run(apart.map(|(x, y): (Tensor, Tensor)| Ok((x, y.t()?)))).contains("f32[3, 8]"));
    }
    settled(before);
}

#[test]
fn batches_of_different_lengths_have_plans_of_their_own() {
    let _context = own_context();
    // Row i has i % 13 + 1 numbers.
    let rows = || {
        Pipeline::from_fn(|| {
            (0..60i64).map(|i| Ok((range(0i64, i % 13 + 1, 1)?.cast(DType::F32)?, tensor(i % 2)?)))
        })
    };
    let lengths = rows().padded_batch(6, 0.0);
    let model = || {
        Sequential::new()
            .then(Apply(|x: &Tensor| x.expand_dims(2)))
            .then(Dense::new(4))
            .then(Apply(|x: &Tensor| x.tanh()?.mean(1)))
            .then(Dense::new(2))
    };
    for parts in [1, 2] {
        let fit = Fit::new(2, 6).accumulate(parts);
        let optimizer = Optimizer::adam(0.01);
        let history = fit.run(&model(), &optimizer, &lengths, loss, |_| Go::On).unwrap();
        assert_eq!(history.position.step, 20 / parts as u64);
        assert_eq!(history.predicted, history.measured);
    }
}

/// Rows of three words each, of which a few are never used; and a label.
fn words(rows: usize, vocabulary: i64) -> Dataset<(Tensor, Tensor)> {
    let x = RandomKey::new(4).int(0, vocabulary - 3, [rows, 3], DType::I64).unwrap();
    let y = x.sum(1).unwrap().modulo(2i64).unwrap();
    let all = range(0i64, rows as i64, 1).unwrap();
    Dataset::of(Dataset::of((x, y)).unwrap().rows(&all).unwrap()).unwrap()
}

fn trained_on_words(
    vocabulary: i64,
    (batch, parts): (usize, usize),
    optimizer: &Optimizer,
    scale: Option<LossScale>,
) -> (Vec<Vec<f32>>, History) {
    set_seed(5);
    let model = Sequential::new()
        .then(Embedding::new(vocabulary as usize, 8))
        .then(Apply(|x: &Tensor| x.mean(1)))
        .then(Dense::new(2));
    let mut fit = Fit::new(3, batch).accumulate(parts).seed(4);
    if let Some(scale) = scale {
        fit = fit.loss_scale(scale);
    }
    let data = words(64, vocabulary);
    let planned = fit.predict(&model, optimizer, &data, loss).unwrap().peak();
    let history = fit.run(&model, optimizer, &data, loss, |_| Go::On).unwrap();
    assert_eq!((history.predicted, history.position.step), (planned, 12));
    (values(&model), history)
}

#[test]
fn rows_of_several_batches_change_the_rows_that_one_batch_of_all_would() {
    let _context = own_context();
    // A table with more rows than all parts use together, and one with fewer; by a rule that moves a row on while its gradient is 0.
    for (vocabulary, table) in [(5000i64, 5000 * 8 * 4u64), (20, 20 * 8 * 4)] {
        let of = |sizes, scale: Option<LossScale>| {
            let (values, history) =
                trained_on_words(vocabulary, sizes, &Optimizer::adam(0.02), scale);
            // Scaled losses have a branch, whose memory is a bound.
            assert!(history.measured <= history.predicted);
            (values, history)
        };
        let (whole, _) = of((16, 1), None);
        let (parts, history) = of((4, 4), None);
        assert_eq!(history.measured, history.predicted, "{vocabulary}");
        let scaled = of((4, 4), Some(LossScale::starting_at(8.0, 100).unwrap())).0;
        for (name, other) in [("parts", &parts), ("scaled", &scaled)] {
            for (a, b) in whole.iter().flatten().zip(other.iter().flatten()) {
                assert!((a - b).abs() < 1e-4, "{name} {vocabulary}: {a} {b}");
            }
        }
        // Rows that are never used stay as they were, to the bit.
        let last = |values: &[Vec<f32>]| values[0][values[0].len() - 24..].to_vec();
        assert_eq!(last(&parts), last(&whole));
        if vocabulary == 5000 {
            // The table and Adam's two; a table of sums would be a fourth.
            let all = 3 * table;
            assert!(history.predicted.get() < all + table / 2, "{}", history.predicted);
        }
    }
}

#[test]
fn a_rule_without_rows_takes_the_mean_of_all_batches_too() {
    let _context = own_context();
    let of =
        |sizes| trained_on_words(300, sizes, &Optimizer::new(Adafactor::default(), 0.01), None);
    let ((whole, _), (parts, history)) = (of((16, 1)), of((2, 8)));
    assert_eq!(history.measured, history.predicted);
    for (a, b) in whole.iter().flatten().zip(parts.iter().flatten()) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}

#[test]
fn a_dataset_counts_the_order_of_its_rows() {
    let _context = own_context();
    let (first, holds) = points(100).look(10).unwrap();
    assert_eq!(first.unwrap().0.shape().to_string(), "[10, 2]");
    assert_eq!(holds[0].bytes, Bytes::new(800).rounded());
}
