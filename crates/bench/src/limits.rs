//! What the machine can do at best: floating-point operations of a product and bytes of a copy, in a second.

use std::time::Instant;

use tonnage::{DType, Elementwise, Result, Tensor, function, random_normal, tensor};

/// Each is the best of this many runs.
const RUNS: usize = 10;

fn best(mut f: impl FnMut() -> Result<()>) -> Result<f64> {
    f()?;
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        f()?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok(least)
}

pub fn print() -> Result<()> {
    let n = 2048;
    let a = tensor(random_normal([n, n], DType::F32)?.to_vec2::<f32>()?)?;
    let product = best(|| a.matmul(&a).map(drop))?;
    println!("flops {:e}", 2.0 * (n as f64).powi(3) / product);
    // A pass that reads once and writes once, into pages that are there already.
    let x = tensor(vec![1.0f32; 1 << 25])?;
    let copy = function(|x: Tensor| x.neg());
    let pass = best(|| copy.call(x.clone()).map(drop))?;
    println!("bytes {:e}", 8.0 * (1u64 << 25) as f64 / pass);
    Ok(())
}
