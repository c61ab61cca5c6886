//! The first things to know: tensors, recipes, a planned function, a gradient, and what memory they took.
//!
//! `cargo run --release -p tonnage-examples first_steps` prints
//!
//!     [[ 8. 11.]
//!      [16. 23.]]
//!     a recipe of 4 GB: true, in use: 64 B
//!     planned 256.06 KiB, used 256.06 KiB, result 8192.000
//!     the tape saves 64 B for: tanh
//!     gradient: [1.         0.7864477  0.41997433]

use tonnage::{Elementwise, GradientTape, Result, Tensor, constant, function, memory, tensor};

pub fn main() -> Result<()> {
    // Eager: an op runs where it stands. A tensor that is moved in lends its bytes to the result.
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
    println!("{}", (x.matmul(&x)? + 1.0)?);

    // A recipe: four billion bytes to whoever reads them, none until then.
    let large = constant(1.0f32, [1000, 1000, 1000])?;
    println!("a recipe of 4 GB: {}, in use: {}", large.is_recipe(), memory::info("cpu:0")?.in_use);

    // A function: traced once, planned once, and its peak is known before it runs. What lies between is one pass.
    let f = function(|(x, y): (Tensor, Tensor)| ((x * y)?.square()? + 0.25)?.sum_all());
    let (x, y) = (tensor(vec![0.5f32; 32_768])?, tensor(vec![0.0f32; 32_768])?);
    let planned = f.plan(&(x.clone(), y.clone()))?.peak();
    let (result, measured) = f.call_measured((x, y))?;
    let used = measured.map(|m| m.used.to_string()).unwrap_or_default();
    println!("planned {planned}, used {used}, result {:.3}", result.scalar::<f32>()?);

    // A gradient: the tape saves what the rows of the ops declare, here the output of tanh.
    let x = tensor([0.0f32, 0.5, 1.0])?;
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x).tanh()?.sum_all()?;
    let held = tape.held();
    let ops: Vec<&str> = held.ops.iter().filter(|h| h.bytes.get() > 0).map(|h| h.op).collect();
    println!("the tape saves {} for: {}", held.bytes(), ops.join(", "));
    println!("gradient: {}", tape.gradient(&y, &[&x])?[0].tensor()?);
    Ok(())
}
