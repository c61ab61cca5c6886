//! A training loop written out, with a layer of one's own: batches in random order, a step that is one plan, a schedule, and figures over
//! what was held out.
//!
//! `cargo run --release -p tonnage-examples custom_training_loop` prints
//!
//!     parameters: 561
//!     epoch 1: loss ...
//!     epoch 8: loss 0.0...
//!     held out: mean squared error 0.0..., the same memory in every step: true

use tonnage::data::Dataset;
use tonnage::nn::{Dense, Layer, Mode, Parameters};
use tonnage::optim::{Optimizer, Schedule};
use tonnage::{
    DType, Elementwise, GradientTape, Part, RandomKey, Result, Tensor, function, memory, parameters, random_normal,
    set_seed,
};

/// A layer with a way around it.
struct Residual {
    wide: Dense,
    narrow: Dense,
}

parameters!(Residual { wide, narrow });

impl Layer for Residual {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        x + self.narrow.forward(&self.wide.forward(x, mode)?.gelu()?, mode)?
    }
}

struct Model {
    body: Residual,
    head: Dense,
}

parameters!(Model { body, head });

impl Layer for Model {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.head.forward(&self.body.forward(x, mode)?, mode)
    }
}

pub fn main() -> Result<()> {
    set_seed(3);
    // What is to be learned: the product of the first two columns.
    let x = random_normal([512, 8], DType::F32)?;
    let column = |i: i64| x.slice(&[Part::ALL, (i..i + 1).into()]);
    let y = (column(0)? * column(1)?)?;
    let (learn, held_out) = Dataset::of((x, y))?.hold_out(8)?;

    let model = Model { body: Residual { wide: Dense::new(32), narrow: Dense::new(8) }, head: Dense::new(1) };
    let (epochs, batch) = (8, 32);
    let steps = (epochs * (learn.len() / batch)) as u64;
    let optimizer = Optimizer::adam(Schedule::Cosine { start: 0.02, end: 0.0, steps }).clip_by_global_norm(1.0);
    let step = function(|(x, y): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let loss = model.forward(&x, Mode::Training)?.mean_squared_error(&y)?.mean_all()?;
        let parameters = model.trainable();
        let gradients = tape.gradient(&loss, &parameters)?;
        optimizer.apply(&parameters, &gradients)?;
        Ok(loss)
    });

    for epoch in 0..epochs {
        let (mut total, mut batches) = (0.0, 0);
        for rows in learn.batches(batch).whole().shuffled(RandomKey::new(epoch as u64))? {
            total += step.call(rows?)?.scalar::<f32>()?;
            batches += 1;
        }
        if epoch == 0 {
            println!("parameters: {}", model.count());
        }
        if epoch == 0 || epoch + 1 == epochs {
            println!("epoch {}: loss {:.4}", epoch + 1, total / batches as f32);
        }
    }
    let (x, y) = held_out.whole();
    let error = model.forward(x, Mode::Inference)?.mean_squared_error(y)?.mean_all()?.scalar::<f32>()?;
    let rows = learn.batches(batch).next().transpose()?;
    let steady = memory::assert_steady(|| match &rows {
        Some(rows) => step.call(rows.clone()).map(drop),
        None => Ok(()),
    });
    println!("held out: mean squared error {error:.4}, the same memory in every step: {}", steady.is_ok());
    Ok(())
}
