//! A training step as one planned program: forward, backward and the update of the variables.
//!
//! `cargo run --release -p tonnage-examples training_step` prints
//!
//!     one plan of 14 steps, peak ...
//!     iteration   0: loss ..., used as predicted: true
//!     iteration 100: loss 0.0..., used as predicted: true

use tonnage::{
    DType, Elementwise, GradientTape, Part, Result, Tensor, Variable, function, random_normal, set_seed,
};

pub fn main() -> Result<()> {
    set_seed(1);
    let hidden = Variable::new("hidden", (random_normal([16, 32], DType::F32)? * 0.2)?)?;
    let last = Variable::new("last", (random_normal([32, 1], DType::F32)? * 0.2)?)?;
    let step = function(|(x, y): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let guess = x.matmul(&hidden.read()?)?.relu()?.matmul(&last.read()?)?;
        let loss = (guess - &y)?.square()?.mean_all()?;
        let gradients = tape.gradient(&loss, &[&hidden, &last])?;
        for (variable, gradient) in [&hidden, &last].into_iter().zip(gradients) {
            variable.assign_sub(&(gradient.tensor()? * 0.1)?)?;
        }
        Ok(loss)
    });

    // Something to learn: the sum of the first two columns, on 128 rows of noise. The noise is a recipe: it takes no
    // memory between calls, and the plan has a step that writes it out for the product.
    let x = random_normal([128, 16], DType::F32)?;
    let y = x.slice(&[Part::ALL, (0..2).into()])?.sum_keep([1])?;
    let plan = step.plan(&(x.clone(), y.clone()))?;
    println!("one plan of {} steps, peak {}", plan.explain().steps.len(), plan.peak());
    for iteration in 0..=100 {
        let (loss, measured) = step.call_measured((x.clone(), y.clone()))?;
        if iteration % 100 == 0 {
            let same = measured.is_some_and(|m| m.used == plan.peak());
            println!("iteration {iteration:>3}: loss {:.5}, used as predicted: {same}", loss.scalar::<f32>()?);
        }
    }
    Ok(())
}
