//! Time against budget: a step of training at 100%, 50% and 30% of what it takes above its inputs, beside one without
//! a budget; and a chain of 1,000 equal layers in the memory of twice the square root of them.
//!
//! `cargo bench -p tonnage --bench budget [name] [runs]`. Runs take turns, so that noise hits all alike; what is
//! printed is the median of the ratios of each turn.

#[path = "../tests/models/nets.rs"]
#[allow(dead_code, reason = "not every network is timed")]
mod nets;

use std::time::Instant;

use nets::Params;
use tonnage::{
    Bytes, DType, Elementwise, Function, GradientTape, Result, Tensor, Variable, Watched, function,
    random_normal, set_seed, tensor,
};

fn drawn(shape: &[usize]) -> Result<Tensor> {
    let sizes: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    tensor(random_normal(shape, DType::F32)?.to_vec::<f32>()?)?.reshape(&sizes[..])
}

fn tokens(shape: [usize; 2]) -> Result<Tensor> {
    let values: Vec<i64> = (0..shape[0] * shape[1]).map(|i| (i * 7 % 50) as i64).collect();
    tensor(values)?.reshape(shape.map(|n| n as i64))
}

type Net = fn(&mut Params, Tensor) -> Result<Tensor>;

fn gpt(p: &mut Params, x: Tensor) -> Result<Tensor> {
    nets::gpt_of(p, x, [8, 64, 64])
}

fn gru(p: &mut Params, x: Tensor) -> Result<Tensor> {
    nets::gru_of(p, x, [16, 32, 64])
}

fn layers(p: &mut Params, x: Tensor, count: usize, width: usize) -> Result<Tensor> {
    let mut h = x;
    for _ in 0..count {
        h = h.matmul(&p.get(&[width, width], width)?)?.tanh()?;
    }
    h.square()?.mean_all()
}

fn mlp(p: &mut Params, x: Tensor) -> Result<Tensor> {
    layers(p, x, 100, 128)
}

fn chain(p: &mut Params, x: Tensor) -> Result<Tensor> {
    layers(p, x, 1000, 64)
}

fn step(net: Net) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor>> {
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut params = Params::default();
        let loss = net(&mut params, x)?;
        let all: Vec<&dyn Watched> =
            params.all.iter().map(|v: &Variable| v as &dyn Watched).collect();
        let grads = tape.gradient(&loss, &all)?;
        for (variable, grad) in params.all.iter().zip(grads) {
            variable.assign_sub(&(grad.tensor()? * 0.01)?)?;
        }
        Ok(loss)
    })
}

/// Prints the time at each budget, over that without one.
fn time(name: &str, net: Net, x: &Tensor, rooms: &[(String, f64)], runs: usize) -> Result<()> {
    set_seed(3);
    let free = step(net);
    free.call(x.clone())?;
    let plan = free.plan(x)?;
    let room = plan.peak() - plan.inputs;
    println!("{name}: inputs {}, activations {room}", plan.inputs);
    let (mut steps, mut ways) = (vec![free], Vec::new());
    for (label, share) in rooms {
        for exact in [false, true] {
            let made = step(net);
            // The first call makes the parameters.
            made.call(x.clone())?;
            let budget = plan.inputs + Bytes::new((room.get() as f64 * share) as u64);
            let made = made.budget(budget)?;
            let made = if exact { made.exact() } else { made };
            let label = if exact { format!("{label}, exact") } else { label.clone() };
            let before = Instant::now();
            match made.plan(x) {
                Ok(plan) => {
                    let fitted = plan.fitted.map(|f| f.to_string()).unwrap_or_default();
                    ways.push((label, fitted, before.elapsed()));
                    made.call(x.clone())?;
                    steps.push(made);
                }
                Err(error) => println!("  {label:<12} {error}"),
            }
        }
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); steps.len()];
    for _ in 0..runs {
        for (step, times) in steps.iter().zip(&mut times) {
            let start = Instant::now();
            step.call(x.clone())?;
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    println!("  {:<12} {:>9.2} ms", "unlimited", median(times[0].clone()) * 1e3);
    for ((label, fitted, planning), own) in ways.iter().zip(&times[1..]) {
        let ratios = own.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        println!("  {label:<12} {:>9.2} x   planned in {planning:.0?}; {fitted}", median(ratios));
    }
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let runs = words.iter().find_map(|a| a.parse().ok()).unwrap_or(15);
    let wanted = |name: &str| {
        words.iter().all(|w| w.parse::<usize>().is_ok()) || words.iter().any(|w| w == name)
    };
    let shares: Vec<(String, f64)> =
        [100, 50, 30].map(|p| (format!("{p}%"), f64::from(p) / 100.0)).to_vec();
    let all: [(&str, Net, Tensor); 5] = [
        ("resnet", nets::resnet20, drawn(&[16, 32, 32, 3])?),
        ("gpt", gpt, tokens([8, 64])?),
        ("gru", gru, drawn(&[512, 16, 32])?),
        ("mlp", mlp, drawn(&[512, 128])?),
        ("u_net", nets::u_net, drawn(&[8, 64, 64, 3])?),
    ];
    for (name, net, x) in all.iter().filter(|(name, ..)| wanted(name)) {
        time(name, *net, x, &shares, runs)?;
    }
    if wanted("chain") {
        // Of a thousand states as many as twice the square root, about 63.
        let share = 2.0 * 1000f64.sqrt() / 1000.0;
        time("chain", chain, &drawn(&[512, 64])?, &[("63 of 1000".into(), share)], runs.min(7))?;
    }
    Ok(())
}
