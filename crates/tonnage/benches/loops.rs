//! Loops beside a peer: `h = tanh(h @ w)`, 200 iterations at 512 x 512, and its gradient at 256 x 256. Memory as
//! predicted, as the executor measured it, and as the system says; time as the best of several runs.
//! `cargo bench -p tonnage --bench loops [forward|250|1000|4000|1119MB|2115MB]`; `cargo xtask bench`
//! has the peers beside it.

use std::time::{Duration, Instant};

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Result, Tensor, fori_loop, function, memory,
    random_normal,
};

fn resident() -> Bytes {
    memory::resident().unwrap_or(Bytes::ZERO)
}

fn best(runs: usize, mut f: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        f()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

/// The sine transform, which is orthogonal: it rotates and does not scale. A random matrix shrinks or grows what goes through it
/// thousands of times until it is subnormal or infinite, and products of subnormal numbers take a hundred times as long.
fn rotation(n: usize) -> Result<Tensor> {
    let (step, scale) = (std::f64::consts::PI / (n + 1) as f64, (2.0 / (n + 1) as f64).sqrt());
    let at = |i: usize, j: usize| (scale * ((i * j) as f64 * step).sin()) as f32;
    let rows: Vec<Vec<f32>> = (1..=n).map(|i| (1..=n).map(|j| at(i, j)).collect()).collect();
    tonnage::tensor(rows)
}

/// A start, in memory.
fn start(n: usize) -> Result<Tensor> {
    tonnage::tensor(random_normal([n, n], DType::F32)?.to_vec2::<f32>()?)
}

fn forward(iterations: i64) -> Result<()> {
    let (h, w) = (start(512)?, rotation(512)?);
    let f = function(move |(h, w): (Tensor, Tensor)| {
        fori_loop(0, iterations, h, |_, h: Tensor| h.matmul(&w)?.tanh())
    });
    let args = (h, w);
    let plan = f.plan(&args)?;
    let before = resident();
    let (_, measured) = f.call_measured(args.clone())?;
    let after = resident().saturating_sub(before);
    let used = measured.map_or(Bytes::ZERO, |m| m.used);
    let time = best(20, || f.call(args.clone()).map(drop))?;
    println!(
        "forward {iterations:>5}: {time:>9.1?}, predicted {}, measured {used}, resident above the start {after}",
        plan.peak(),
    );
    Ok(())
}

/// With default settings, or with a budget: what a peer takes for it.
fn gradient(iterations: i64, budget: Option<&str>) -> Result<()> {
    let (h, w) = (start(256)?, rotation(256)?);
    let mut f = function(move |(h, w): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&w);
        let last = fori_loop(0, iterations, h, |_, h: Tensor| h.matmul(&w)?.tanh())?;
        tape.gradient(&last.sum_all()?, &[&w])?[0].tensor()
    });
    if let Some(budget) = budget {
        f = f.budget(budget)?.no_spill();
    }
    let args = (h, w);
    let plan = f.plan(&args)?;
    let before = resident();
    memory::reset_peak("cpu:0")?;
    let held = memory::info("cpu:0")?.in_use;
    let (_, measured) = f.call_measured(args.clone())?;
    let after = resident().saturating_sub(before);
    let reserved = memory::info("cpu:0")?.peak - held;
    let (used, recomputed) =
        measured.map_or((Bytes::ZERO, 0), |m| (m.used, m.recomputed_iterations));
    let time = best(3, || f.call(args.clone()).map(drop))?;
    println!(
        "gradient {iterations:>4} {:>8}: {time:>9.1?}, predicted {}, measured {used}, reserved {reserved}, resident above the start {after}; {} iterations, {recomputed} of them recomputed, predicted {}",
        budget.unwrap_or("default"),
        plan.peak(),
        iterations as u64 + recomputed,
        plan.recomputed_iterations().map_or("?".to_string(), |n| n.to_string()),
    );
    Ok(())
}

fn main() -> Result<()> {
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|o| o == name);
    if wanted("forward") {
        forward(200)?;
        forward(400)?;
    }
    // About twice the square root of their number of states.
    for (iterations, few) in [(250, "12MB"), (1000, "21MB"), (4000, "37MB")] {
        if wanted(&iterations.to_string()) {
            gradient(iterations, None)?;
            gradient(iterations, Some(few))?;
        }
    }
    // What TensorFlow's while_loop and PyTorch take at 4,000 iterations.
    for budget in ["1119MB", "2115MB"] {
        if wanted(budget) {
            gradient(4000, Some(budget))?;
        }
    }
    Ok(())
}
