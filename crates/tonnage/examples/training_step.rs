//! A training step as one planned program: forward, backward and the update of the variables.
//!
//! `cargo run --release --example training_step -p tonnage`

use tonnage::{
    DType, Elementwise, GradientTape, Part, Result, Tensor, Variable, function, random_normal,
    set_seed,
};

fn main() -> Result<()> {
    set_seed(1);
    let hidden = Variable::new("hidden", (random_normal([32, 64], DType::F32)? * 0.2)?)?;
    let last = Variable::new("last", (random_normal([64, 1], DType::F32)? * 0.2)?)?;
    let step = function(|(x, y): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let guess = x.matmul(&hidden.read()?)?.relu()?.matmul(&last.read()?)?;
        let loss = (guess - &y)?.square()?.mean_all()?;
        let grads = tape.gradient(&loss, &[&hidden, &last])?;
        for (variable, grad) in [&hidden, &last].into_iter().zip(grads) {
            variable.assign_sub(&(grad.tensor()? * 0.05)?)?;
        }
        Ok(loss)
    });

    // Something to learn: the sum of the first two columns, on 512 rows of noise. The noise is a recipe: it
    // takes no memory between calls, and the plan has a step that writes it out for matmul.
    let x = random_normal([512, 32], DType::F32)?;
    let y = x.slice(&[Part::ALL, (0..2).into()])?.sum_keep([1])?;
    println!("{}", step.plan(&(x.clone(), y.clone()))?);
    for round in 0..=200 {
        let (loss, measured) = step.call_measured((x.clone(), y.clone()))?;
        if round % 50 == 0 {
            let used = measured.map(|m| m.used.to_string()).unwrap_or_default();
            println!("round {round:>3}: loss {:.5}, used {used}", loss.scalar::<f32>()?);
        }
    }
    Ok(())
}
