//! The first things to know: tensors, recipes, a planned function, a gradient, and what memory they took.
//!
//! `cargo run --release --example first_slice -p tonnage`

use tonnage::{Elementwise, GradientTape, Result, Tensor, constant, function, memory, tensor};

fn main() -> Result<()> {
    // Eager: an op runs where it stands. A tensor that is moved in lends its bytes to the result.
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
    println!("{}\n", (x.matmul(&x)? + 1.0)?);

    // A recipe: four billion bytes to whoever reads them, none until then.
    let large = constant(1.0f32, [1000, 1000, 1000])?;
    println!("recipe: {}, in use: {}\n", large.is_recipe(), memory::info("cpu:0")?.in_use);

    // A function: traced once, planned once, and its peak is known before it runs.
    let f = function(|(x, w): (Tensor, Tensor)| x.matmul(&w)?.tanh()?.square()?.sum_all());
    let (x, w) = (constant(0.01f32, [256, 512])?, constant(0.5f32, [512, 128])?);
    println!("{}", f.plan(&(x.clone(), w.clone()))?);
    println!("result: {}\n", f.call((x, w))?);

    // A gradient: the tape keeps what the rows of the ops declare, here the output of tanh.
    let x = tensor([0.0f32, 0.5, 1.0])?;
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x).tanh()?.sum_all()?;
    println!("{}", tape.held());
    println!("gradient: {}", tape.gradient(&y, &[&x])?[0].tensor()?);
    Ok(())
}
