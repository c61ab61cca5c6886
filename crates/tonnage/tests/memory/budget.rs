//! A budget is a contract: a call stays under it with the same results, or is refused before it starts.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, DType, Dim, Elementwise, ErrorKind, Function, GradientTape, Result, Tensor, Variable,
    Watched, function, memory,
};

use crate::common::chain::{self, drawn};
use crate::common::{call_checked, in_use, own_context};

const WIDTH: usize = 16;
const ROWS: usize = 1024;

fn weights(layers: usize) -> Vec<Variable> {
    chain::weights(layers, WIDTH, 7)
}

/// One step of training with a skip around every second layer.
fn step(
    weights: &[Variable],
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
    let held = weights.to_vec();
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for pair in held.chunks(2) {
            let mut inner = h.clone();
            for w in pair {
                inner = inner.matmul(&w.read()?)?.tanh()?;
            }
            h = (h + inner)?;
        }
        let loss = h.square()?.mean_all()?;
        let sources: Vec<&dyn Watched> = held.iter().map(|w| w as &dyn Watched).collect();
        for (w, grad) in held.iter().zip(tape.gradient(&loss, &sources)?) {
            w.assign_sub(&(grad.tensor()? * 0.1)?)?;
        }
        Ok(loss)
    })
}

/// Losses and weights after some steps, as bits.
fn trained(budget: Option<Bytes>) -> (Vec<f32>, Vec<Vec<f32>>, Bytes) {
    let weights = weights(24);
    let step = match budget {
        Some(budget) => step(&weights).exact().budget(budget).unwrap(),
        None => step(&weights),
    };
    let x = drawn([ROWS, WIDTH], 1.0);
    let peak = step.plan(&x).unwrap().peak();
    let losses = (0..20).map(|_| step.call(x.clone()).unwrap().scalar::<f32>().unwrap()).collect();
    let values = weights.iter().map(|w| w.read().unwrap().to_vec().unwrap()).collect();
    (losses, values, peak)
}

#[test]
fn training_gives_the_same_bits_at_every_budget() {
    let _context = own_context();
    let (losses, values, unlimited) = trained(None);
    assert!(losses[19] < losses[0]);
    let mut last = unlimited;
    for percent in [90, 70, 50, 40] {
        let budget = Bytes::new(unlimited.get() * percent / 100);
        let (less, same, peak) = trained(Some(budget));
        assert!(peak <= budget && peak < last, "{peak} at {budget} after {last}");
        assert_eq!(less, losses, "at {percent}%");
        assert_eq!(same, values, "at {percent}%");
        last = peak;
    }
}

#[test]
fn what_a_budget_predicts_is_what_a_call_takes() {
    let _context = own_context();
    let weights = weights(16);
    let x = drawn([ROWS, WIDTH], 1.0);
    let quickest = step(&weights).budget("1TiB").unwrap().plan(&x).unwrap().peak();
    for percent in [80, 60, 50] {
        let budget = Bytes::new(quickest.get() * percent / 100);
        let step = step(&weights).exact().budget(budget).unwrap();
        let plan = step.plan(&x).unwrap();
        assert!(plan.fitted.unwrap().recomputed > 0, "{plan}");
        assert!(plan.to_string().contains("nodes recomputed"), "{plan}");
        call_checked(&step, &x);
    }
}

#[test]
fn a_call_that_cannot_fit_is_refused_before_it_starts_and_the_least_budget_works() {
    let _context = own_context();
    let weights = weights(8);
    let before: Vec<Vec<f32>> =
        weights.iter().map(|w| w.read().unwrap().to_vec().unwrap()).collect();
    let x = drawn([ROWS, WIDTH], 1.0);
    let held = in_use();
    memory::reset_peak("cpu:0").unwrap();
    let refused = step(&weights).budget("70 KiB").unwrap();
    let error = refused.call(x.clone()).unwrap_err();
    let ErrorKind::OverBudget { budget, least: Some(least), shortage, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(*budget, "70KiB".parse().unwrap());
    assert_eq!(memory::info("cpu:0").unwrap().peak, held, "something ran: {error}");
    assert!(!shortage.holders.is_empty(), "{error}");
    assert!(error.to_string().contains(file!()), "{error}");
    for (w, old) in weights.iter().zip(before) {
        assert_eq!(w.read().unwrap().to_vec::<f32>().unwrap(), old);
    }
    let works = step(&weights).budget(*least).unwrap();
    assert_eq!(works.plan(&x).unwrap().peak(), *least);
    works.call(x.clone()).unwrap();
    let under = Bytes::new(least.get() - 1);
    assert!(step(&weights).budget(under).unwrap().call(x).is_err());
}

#[test]
fn the_price_curve_falls_in_bytes_and_rises_in_time() {
    let _context = own_context();
    let step = step(&weights(32));
    let x = drawn([ROWS, WIDTH], 1.0);
    let prices = step.prices(&x).unwrap();
    assert!(prices.len() >= 8, "{prices:?}");
    let by_default = step.plan(&x).unwrap().peak();
    let quickest = step.budget("1TiB").unwrap().plan(&x).unwrap().peak();
    assert!(prices[0].peak == quickest && by_default < quickest, "{by_default}, {prices:?}");
    assert!(prices.is_sorted_by(|a, b| a.peak > b.peak), "{prices:?}");
    assert!(prices.is_sorted_by(|a, b| a.fitted.seconds <= b.fitted.seconds), "{prices:?}");
}

/// Checks that the largest batch fits and one more does not, for calls that say so and not for plans alone.
fn largest_batch<F: Fn(Tensor) -> Result<Tensor>>(
    f: Function<Tensor, Tensor, F>,
    columns: usize,
    budget: &str,
) -> usize {
    let spec = |n: Dim| Tensor::spec(DType::F32, [n, Dim::from(columns)]);
    let most = f.max_batch(&spec(Dim::open("batch")), budget).unwrap();
    assert!(most > 0);
    let f = f.budget(budget).unwrap();
    let over = f.plan(&spec(Dim::from(most + 1))).unwrap_err();
    assert!(matches!(over.kind(), ErrorKind::OverBudget { .. }), "{over}");
    let x = drawn([most, columns], 1.0);
    call_checked(&f, &x);
    assert!(f.call(drawn([most + 1, columns], 1.0)).is_err());
    most
}

#[test]
fn the_largest_batch_fits_and_one_more_does_not() {
    let _context = own_context();
    let pieces = largest_batch(step(&weights(4)), WIDTH, "256KiB");
    let exact = largest_batch(step(&weights(4)).exact(), WIDTH, "256KiB");
    let alone = largest_batch(step(&weights(4)).exact().no_spill(), WIDTH, "256KiB");
    assert!(pieces > exact && exact >= alone && alone > 100, "{pieces} {exact} {alone}");
    // One that grows with the square, and one that holds no more than its argument.
    let square = function(|x: Tensor| x.matmul(&x.t()?)?.tanh()?.sum_all());
    assert!(largest_batch(square, 8, "1MiB") < 600);
    let sum = function(|x: Tensor| x.tanh()?.sum_all());
    let most = largest_batch(sum, 256, "1MiB");
    assert!((1000..=1024).contains(&most), "{most}");
}

#[test]
fn one_name_is_one_length_for_the_largest_batch_too() {
    let _context = own_context();
    let f = function(|(x, y): (Tensor, Tensor)| (x * y)?.tanh()?.sum_all());
    // Made apart: the name alone says that they are the same.
    let spec = || Tensor::spec(DType::F32, [Dim::open("batch"), Dim::from(256)]);
    let most = f.max_batch(&(spec(), spec()), "1MiB").unwrap();
    assert!((500..=512).contains(&most), "{most}");
}

#[test]
fn no_batch_at_all_is_none() {
    let _context = own_context();
    let spec = Tensor::spec(DType::F32, [Dim::open("batch"), Dim::from(WIDTH)]);
    assert_eq!(step(&weights(8)).max_batch(&spec, "4KiB").unwrap(), 0);
}

#[test]
fn a_budget_that_makes_no_sense_is_refused_with_what_to_write_instead() {
    let _context = own_context();
    let of = |text: &str| step(&weights(2)).budget(text).map(|_| ()).unwrap_err().to_string();
    assert!(of("0").contains("a budget of 0 bytes"), "{}", of("0"));
    assert!(of("5 parsecs").contains("MiB"), "{}", of("5 parsecs"));
    let two = step(&weights(2));
    let open = Tensor::spec(DType::F32, [ROWS, WIDTH]);
    let error = two.max_batch(&open, "1MiB").unwrap_err().to_string();
    assert!(error.contains("0 open dims"), "{error}");
}
