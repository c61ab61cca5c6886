//! The gradient of a long loop in little memory: carried states are kept at checkpoints, the rest is run
//! again. The peak grows with the square root of the number of rounds.
//!
//! `cargo run --release --example long_loop -p tonnage`

use tonnage::{Elementwise, GradientTape, Result, Tensor, constant, function, tensor, while_loop};

fn main() -> Result<()> {
    let h = tensor(vec![0.5f32; 65_536])?;
    for rounds in [16, 256, 4096] {
        let f = function(move |h: Tensor| {
            let mut tape = GradientTape::new();
            tape.watch(&h);
            let (_, last) = while_loop(
                (constant(0i32, ())?, h.clone()),
                |(i, _)| i.less(rounds),
                |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, (h * 0.999)?.tanh()?)),
            )?;
            tape.gradient(&last.sum_all()?, &[&h])?[0].tensor()
        });
        let peak = f.plan(&h)?.peak();
        let (grad, measured) = f.call_measured(h.clone())?;
        let used = measured.map(|m| m.used.to_string()).unwrap_or_default();
        let first = grad.slice(&[(0..1).into()])?.scalar::<f32>()?;
        println!("{rounds:>5} rounds: planned {peak}, used {used}, gradient {first:.6}");
    }
    Ok(())
}
