//! Finding a leak: a step that keeps something is named with its line; who holds a tensor is told by `why`.
//!
//! `cargo run --release -p tonnage-examples finding_a_leak` prints
//!
//!     not steady: after 5 more runs 20.00 KiB more are in use (268.00 KiB before, 288.00 KiB now); activation mean at ...finding_a_leak.rs:... holds 20.00 KiB in 5 more; drop what a run leaves behind (at ...)
//!     steady when it keeps numbers: true
//!     256.00 KiB of activation tanh at ...
//!       saved by a gradient tape for the gradient of tanh at ...
//!       1 handle of the program

use tonnage::{Elementwise, GradientTape, Result, Tensor, memory, tensor};

fn loss_of(x: &Tensor) -> Result<Tensor> {
    (x * 0.5)?.tanh()?.square()?.mean(1)
}

pub fn main() -> Result<()> {
    let x = tensor(vec![vec![1.0f32; 64]; 1024])?;

    // Wrong: the history holds a tensor of 4 KiB for every step.
    let mut history = Vec::new();
    if let Err(error) = memory::assert_steady(|| {
        history.push(loss_of(&x)?);
        Ok(())
    }) {
        println!("{error}");
    }

    // Right: it holds a number.
    let mut history = Vec::new();
    let steady = memory::assert_steady(|| {
        history.push(loss_of(&x)?.mean_all()?.scalar::<f32>()?);
        Ok(())
    });
    println!("steady when it keeps numbers: {}", steady.is_ok());

    // Why is this one alive? A tape that is still there saves it.
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x).tanh()?;
    println!("{}", memory::why(&y)?);
    drop(tape);
    Ok(())
}
