//! Time against budget: a step of training at 50% and 30% of what the quickest plan takes above its inputs, beside that
//! one; and a chain of 1,000 equal layers in the memory of twice the square root of them. The quickest plan is that of a
//! budget which is no bound: gradients of loops checkpoint every state there, which they do not without a budget.
//!
//! `cargo bench -p tonnage --bench budget [name] [runs]`. Runs take turns, so that noise hits all alike; what is
//! printed is the median of the ratios of each turn, and the ratio of the best times. With the word `prices` it times every point of the price curve
//! instead, beside what was expected of it.

#[path = "../tests/training/models/nets.rs"]
#[allow(dead_code, reason = "not every network is timed")]
mod nets;

use std::time::{Duration, Instant};

use nets::Params;
use tonnage::{
    Bytes, DType, Elementwise, Function, GradientTape, Plan, Price, Result, Tensor, Variable,
    Watched, function, random_normal, set_seed, tensor,
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

/// Shares of a room, with their names.
type Rooms = &'static [(&'static str, f64)];

/// One of several ways to run a step.
struct Way<F> {
    label: String,
    step: F,
    fitted: String,
    expected: f64,
    planning: Duration,
}

/// Times a budget that is no bound, and these; prints the times over that of the first.
fn time(
    name: &str,
    net: Net,
    x: &Tensor,
    runs: usize,
    budgets: impl FnOnce(&Plan, &[Price]) -> Vec<(String, Bytes, bool)>,
) -> Result<()> {
    set_seed(3);
    let way = |label: String, budget: Bytes, exact: bool| {
        let made = step(net);
        // The first call makes the parameters.
        made.call(x.clone())?;
        let made = made.budget(budget)?;
        let step = if exact { made.exact() } else { made };
        let before = Instant::now();
        let fitted = step.plan(x)?.fitted;
        let planning = before.elapsed();
        let expected = fitted.map_or(1.0, |f| f.seconds / f.unlimited_seconds);
        step.call(x.clone())?;
        let fitted = fitted.map(|f| f.to_string()).unwrap_or_default();
        Ok::<_, tonnage::Error>(Way { label, step, fitted, expected, planning })
    };
    let mut ways = vec![way("unlimited".into(), Bytes::new(1 << 40), false)?];
    let plan = ways[0].step.plan(x)?;
    println!("{name}: inputs {}, activations {}", plan.inputs, plan.peak() - plan.inputs);
    for (label, budget, exact) in budgets(&plan, &ways[0].step.prices(x)?) {
        match way(label.clone(), budget, exact) {
            Ok(way) => ways.push(way),
            Err(error) => println!("  {label:<12} {error}"),
        }
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for _ in 0..runs {
        for (way, times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            way.step.call(x.clone())?;
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let best = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
    let (middle, least) = (median(times[0].clone()) * 1e3, best(&times[0]) * 1e3);
    println!("  {:<12} {middle:>9.2} ms, at best {least:.2} ms", "unlimited");
    for (way, own) in ways.iter().zip(&times).skip(1) {
        let ratio = median(own.iter().zip(&times[0]).map(|(a, b)| a / b).collect());
        let Way { label, fitted, planning, expected, .. } = way;
        let best = best(own) / best(&times[0]);
        println!(
            "  {label:<12} {ratio:>6.2} x, {best:.2} x at best, {expected:.2} expected; planned in {planning:.0?}; {fitted}"
        );
    }
    Ok(())
}

/// These shares of what the quickest plan takes above its inputs, with and without pieces.
fn shares(shares: Rooms, plan: &Plan) -> Vec<(String, Bytes, bool)> {
    let room = (plan.peak() - plan.inputs).get() as f64;
    let of = |(label, share): &(&str, f64)| {
        let budget = plan.inputs + Bytes::new((room * share) as u64);
        [(label.to_string(), budget, false), (format!("{label}, exact"), budget, true)]
    };
    shares.iter().flat_map(of).collect()
}

/// Every point of the price curve.
fn curve(prices: &[Price]) -> Vec<(String, Bytes, bool)> {
    prices.iter().map(|price| (price.peak.to_string(), price.peak, false)).collect()
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let runs = words.iter().find_map(|a| a.parse().ok()).unwrap_or(15);
    let prices = words.iter().any(|w| w == "prices");
    let names: Vec<&String> =
        words.iter().filter(|w| *w != "prices" && w.parse::<usize>().is_err()).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|w| *w == name);
    let halves: Rooms = &[("50%", 0.5), ("30%", 0.3)];
    // Of a thousand states as many as twice the square root.
    let root: Rooms = &[("63 of 1000", 0.063_245)];
    let all: [(&str, Net, Tensor, Rooms); 6] = [
        ("resnet", nets::resnet20, drawn(&[16, 32, 32, 3])?, halves),
        ("gpt", gpt, tokens([8, 64])?, halves),
        ("gru", gru, drawn(&[512, 16, 32])?, halves),
        ("mlp", mlp, drawn(&[512, 128])?, halves),
        ("u_net", nets::u_net, drawn(&[8, 64, 64, 3])?, halves),
        ("chain", chain, drawn(&[512, 64])?, root),
    ];
    for (name, net, x, rooms) in all.iter().filter(|(name, ..)| wanted(name)) {
        let runs = if *name == "chain" { runs.min(7) } else { runs };
        time(name, *net, x, runs, |plan, points| match prices {
            true => curve(points),
            false => shares(rooms, plan),
        })?;
    }
    Ok(())
}
