//! A model of text under a budget: a small transformer that says the next character of a play. What less memory costs is told first, then a
//! step is held to half of what it would take.
//!
//! `cargo run --release -p tonnage-examples text_under_a_budget` prints
//!
//!     65535 characters, 59 of them different
//!     without a budget a step takes ...
//!     at the least: ... and ... times the time
//!     under half of it: loss 4.... at first, 3.... after 12 steps, never over the budget: true

use std::collections::BTreeSet;

use tonnage::data::Dataset;
use tonnage::nn::{Activation, Dense, Embedding, LayerNorm, MultiHeadAttention, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Fit, Go};
use tonnage::{Bytes, Result, Tensor, set_seed, tensor};

const TEXT: &str = include_str!("../crates/cli/data/coriolanus.txt");
const LENGTH: usize = 32;
const ROWS: usize = 96;

pub fn main() -> Result<()> {
    set_seed(1);
    let vocabulary: Vec<char> = TEXT.chars().collect::<BTreeSet<char>>().into_iter().collect();
    let tokens: Vec<i64> = TEXT.chars().filter_map(|c| vocabulary.binary_search(&c).ok()).map(|i| i as i64).collect();
    println!("{} characters, {} of them different", tokens.len(), vocabulary.len());
    let rows = |shift: usize| tensor(&tokens[shift..shift + ROWS * LENGTH])?.reshape([ROWS as i64, LENGTH as i64]);
    let data = Dataset::of((rows(0)?, rows(1)?))?;

    let mut model = Sequential::new().then(Embedding::new(vocabulary.len(), 32));
    for _ in 0..3 {
        model = model
            .then(LayerNorm::new())
            .then(MultiHeadAttention::new(2).causal())
            .then(Dense::new(64))
            .then(Activation::Gelu)
            .then(Dense::new(32));
    }
    let model = model.then(Dense::new(vocabulary.len()));
    let optimizer = Optimizer::adam(0.01);
    let loss = |logits: &Tensor, next: &Tensor| logits.sparse_cross_entropy(next);
    let fit = Fit::new(2, 16);
    let free = fit.predict(&model, &optimizer, &data, loss)?.peak();
    println!("without a budget a step takes {free}");
    let prices = fit.prices(&model, &optimizer, &data, loss)?;
    if let (Some(first), Some(last)) = (prices.first(), prices.last()) {
        println!("at the least: {} and {:.1} times the time", last.peak, last.fitted.seconds / first.fitted.seconds);
    }

    let half = Bytes::new(free.get() / 2);
    let mut seen = Vec::new();
    let history = fit.budget(half.into()).run(&model, &optimizer, &data, loss, |progress| {
        seen.push(progress.loss);
        Go::On
    })?;
    let (first, last) = (seen.first().copied().unwrap_or(0.0), seen.last().copied().unwrap_or(0.0));
    let held = history.measured <= half;
    println!("under half of it: loss {first:.2} at first, {last:.2} after {} steps, never over the budget: {held}", seen.len());
    Ok(())
}
