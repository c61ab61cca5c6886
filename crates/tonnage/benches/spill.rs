//! What a budget costs when values are recomputed, and when they may wait in a file: one training step of a deep
//! network of wide layers, at shares of the peak that it has without a budget. Time as the best of several runs, in turn.
//! `cargo bench -p tonnage --bench spill [width] [rows] [layers]`; `TONNAGE_SPILL_DIR` chooses the disk.

use std::time::{Duration, Instant};

use tonnage::{
    Bytes, DType, Elementwise, Function, GradientTape, Result, Tensor, Variable, Watched, function,
    random_normal,
};

fn matrix(rows: usize, columns: usize) -> Result<Tensor> {
    let made = (random_normal([rows, columns], DType::F32)? * (1.0 / (columns as f64).sqrt()))?;
    tonnage::tensor(made.to_vec2::<f32>()?)
}

fn step(
    weights: &[Variable],
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
    let held = weights.to_vec();
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for w in &held {
            h = h.matmul(&w.read()?)?.tanh()?;
        }
        let loss = h.square()?.mean_all()?;
        let sources: Vec<&dyn Watched> = held.iter().map(|w| w as &dyn Watched).collect();
        for (w, grad) in held.iter().zip(tape.gradient(&loss, &sources)?) {
            w.assign_sub(&(grad.tensor()? * 1e-3)?)?;
        }
        Ok(loss)
    })
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

fn main() -> Result<()> {
    let sizes: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let size = |i: usize, default: usize| sizes.get(i).copied().unwrap_or(default);
    let (width, rows, layers) = (size(0, 1024), size(1, 2048), size(2, 24));
    let weights: Vec<Variable> = (0..layers)
        .map(|i| Variable::new(&format!("w{i}"), matrix(width, width)?))
        .collect::<Result<_>>()?;
    let x = matrix(rows, width)?;
    let unlimited = step(&weights);
    let plan = unlimited.plan(&x)?;
    let fastest = best(3, || unlimited.call(x.clone()).map(drop))?;
    println!(
        "{layers} layers of {width}, {rows} rows: {} without a budget, {fastest:.1?}",
        plan.peak()
    );
    let held = plan.inputs;
    for percent in [80, 60, 50, 40, 30, 20] {
        // Of what a budget can do something about.
        let budget = held + Bytes::new(plan.obtains().get() * percent / 100);
        for (name, f) in [("remat", step(&weights).no_spill()), ("spill", step(&weights))] {
            let f = f.budget(budget)?;
            let plan = match f.plan(&x) {
                Ok(plan) => plan,
                Err(error) => {
                    println!(
                        "{percent:>3}% {name}: {}",
                        error.to_string().chars().take(60).collect::<String>()
                    );
                    continue;
                }
            };
            let time = best(3, || f.call(x.clone()).map(drop))?;
            let longer = time.as_secs_f64() / fastest.as_secs_f64();
            let Some(fitted) = plan.fitted else { continue };
            println!(
                "{percent:>3}% {name}: {time:>9.1?}, {longer:.2} times ({:.2} expected); {} recomputed, {} spilled, peak {}",
                fitted.seconds / fitted.unlimited_seconds,
                fitted.recomputed,
                fitted.spilled,
                plan.peak(),
            );
        }
    }
    Ok(())
}
