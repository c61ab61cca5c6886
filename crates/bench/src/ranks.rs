//! Training on several ranks: what each holds, sends and takes, for every sharding; and a sum over ranks. Under `mpirun`; rank 0 prints.

use std::time::Instant;

use tonnage::data::Dataset;
use tonnage::nn::{Dense, Parameters, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Fit, Go, Sharding};
use tonnage::world::{self, World};
use tonnage::{Bytes, ErrorKind, Result, Tensor, function, memory, ones, zeros};

/// Layers, their width, and the rows of a batch.
const LAYERS: usize = 8;
const WIDTH: usize = 2048;
const BATCH: usize = 16;
/// Steps of each sharding.
const STEPS: usize = 5;
/// Elements of the sum: 64 MiB.
const SUM: usize = 16 << 20;
/// Sums that are made; the median counts.
const SUMS: usize = 9;

/// Prints the figures of these ranks.
pub fn print() -> Result<()> {
    let world = world::join()?;
    let say = |line: String| {
        if world.rank() == 0 {
            println!("{line}");
        }
    };
    say(format!("{} ranks, {}", world.size(), world.engine().name()));
    say(format!("{LAYERS} layers of {WIDTH} x {WIDTH}, Adam, {BATCH} rows a rank; in parameters"));
    for sharding in Sharding::ALL {
        say(trained(&world, sharding)?);
    }
    say(summed(&world)?);
    Ok(())
}

fn loss(said: &Tensor, truth: &Tensor) -> Result<Tensor> {
    said.squared_difference(truth)
}

/// Trains with a sharding in the least memory that it can, as one line.
fn trained(world: &World, sharding: Sharding) -> Result<String> {
    let dense = |all: Sequential, _| all.then(Dense::new(WIDTH).no_bias());
    let (model, adam) = ((0..LAYERS).fold(Sequential::new(), dense), Optimizer::adam(1e-4));
    let rows = BATCH * world.size() * STEPS;
    let data = Dataset::of((ones([rows, WIDTH])?, zeros([rows, WIDTH])?))?;
    let mut fit = Fit::new(1, BATCH).across(world).shard(sharding);
    if sharding == Sharding::Weights {
        let tried = fit.clone().budget(Bytes::new(1)).predict(&model, &adam, &data, loss);
        if let Err(error) = tried {
            let ErrorKind::OverBudget { least: Some(least), .. } = error.kind() else {
                return Err(error);
            };
            fit = fit.budget(*least);
        }
    }
    let made = fit.run(&model, &adam, &data, loss, |_| Go::On)?;
    let parameters = (model.count() * 4) as f64;
    let times = |bytes: Bytes| bytes.get() as f64 / parameters;
    Ok(format!(
        "{sharding:<16} predicted {:.3}, measured {:.3}, sent a step {:.3} of {:.3}, {:.1} ms a step",
        times(made.predicted),
        times(made.measured),
        times(made.sent) / made.steps.max(1) as f64,
        times(made.predicted_sent),
        made.seconds * 1e3 / made.steps.max(1) as f64,
    ))
}

/// The time of a sum over ranks, in place, and what it takes beside its operand.
fn summed(world: &World) -> Result<String> {
    let sum = function(|x: Tensor| x.all_reduce(world));
    // A recipe at first; a tensor with bytes of its own after the first sum.
    let mut x = sum.call(ones([SUM])?)?;
    let (mut times, mut extra) = (Vec::new(), Bytes::ZERO);
    for _ in 0..SUMS {
        world.engine().barrier("bench")?;
        memory::reset_peak("cpu:0")?;
        let (before, start) = (memory::info("cpu:0")?.in_use, Instant::now());
        x = sum.call(x)?;
        times.push(start.elapsed().as_secs_f64());
        extra = extra.max(memory::info("cpu:0")?.peak.saturating_sub(before));
    }
    times.sort_unstable_by(f64::total_cmp);
    let median = times[times.len() / 2] * 1e3;
    Ok(format!("a sum of 64 MiB: {median:.1} ms, {extra} beside it"))
}
