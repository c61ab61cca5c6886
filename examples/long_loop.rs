//! The gradient of a long recurrent loop in a budget: as many carried states are saved as fit, the rest is recomputed.
//!
//! `cargo run --release -p tonnage-examples long_loop` prints
//!
//!        16 iterations: planned 292.00 KiB, used 292.00 KiB, 0 of them recomputed, gradient 0.847...
//!       256 iterations: planned 932.00 KiB, used 932.00 KiB, 201 of them recomputed, gradient 0.216...
//!      1024 iterations: planned 932.00 KiB, used 932.00 KiB, 969 of them recomputed, gradient 0.046...

use tonnage::{Elementwise, GradientTape, Result, Tensor, constant, function, tensor, while_loop};

pub fn main() -> Result<()> {
    let h = tensor(vec![0.1f32; 4096])?;
    for iterations in [16, 256, 1024] {
        let f = function(move |h: Tensor| {
            let mut tape = GradientTape::new();
            tape.watch(&h);
            let (_, last) = while_loop(
                (constant(0i32, ())?, h.clone()),
                |(i, _)| i.less(iterations),
                |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, (h * 0.999)?.tanh()?)),
            )?;
            tape.gradient(&last.sum_all()?, &[&h])?[0].tensor()
        })
        .budget("1MiB")?;
        let plan = f.plan(&h)?;
        let (gradient, measured) = f.call_measured(h.clone())?;
        let used = measured.map(|m| m.used.to_string()).unwrap_or_default();
        let recomputed = plan.recomputed_iterations().unwrap_or(0);
        let first = gradient.slice(&[(0..1).into()])?.to_vec::<f32>()?[0];
        println!("{iterations:>5} iterations: planned {}, used {used}, {recomputed} of them recomputed, gradient {first:.6}", plan.peak());
    }
    Ok(())
}
