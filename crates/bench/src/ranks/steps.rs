//! A training step of all ranks beside a step of one rank, of as many rows a rank: what sums over ranks cost. In turns: rank 0 alone on the machine; each
//! rank by itself, at once, which shows what the machine's memory costs; and all together.

use std::time::Instant;

use tonnage::data::Dataset;
use tonnage::nn::{Dense, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Fit, Go};
use tonnage::world::World;
use tonnage::{Result, Tensor, ones, set_seed, zeros};

use super::{median, most, say};

/// Layers, their width, and the rows of a rank's batch.
const LAYERS: usize = 8;
const WIDTH: usize = 2048;
const BATCH: usize = 512;
/// Steps of a turn; the first is not counted.
const STEPS: usize = 4;
/// Turns.
const TURNS: usize = 3;

pub fn print(world: &World) -> Result<()> {
    say(world, &format!("{LAYERS} layers of {WIDTH} x {WIDTH}, Adam, {BATCH} rows a rank"));
    let (mut alone, mut at_once, mut together) = (Vec::new(), Vec::new(), Vec::new());
    let own = Fit::new(1, BATCH);
    let all = own.clone().across(world);
    for _ in 0..TURNS {
        if world.rank() == 0 {
            alone.extend(trained(&own, 1)?);
        }
        world.must(world.engine().barrier("bench"));
        at_once.extend(trained(&own, 1)?);
        world.must(world.engine().barrier("bench"));
        together.extend(trained(&all, world.size())?);
    }
    let alone = most(world, if world.rank() == 0 { median(alone) } else { 0.0 });
    let (at_once, together) = (most(world, median(at_once)), most(world, median(together)));
    for (name, time) in [
        ("one rank alone", alone),
        ("each rank by itself, at once", at_once),
        ("all ranks together", together),
    ] {
        say(world, &format!("{name:<30} {:>8.1} ms, {:.2}", time * 1e3, time / alone));
    }
    Ok(())
}

/// The seconds of each step but the first.
fn trained(fit: &Fit, ranks: usize) -> Result<Vec<f64>> {
    let dense = |all: Sequential, _| all.then(Dense::new(WIDTH).no_bias());
    // Ranks have drawn as many numbers, whatever one of them did alone.
    set_seed(7);
    let (model, adam) = ((0..LAYERS).fold(Sequential::new(), dense), Optimizer::adam(1e-4));
    let rows = BATCH * ranks * STEPS;
    let data = Dataset::of((ones([rows, WIDTH])?, zeros([rows, WIDTH])?))?;
    let loss = |said: &Tensor, truth: &Tensor| said.squared_difference(truth);
    let (mut times, mut last) = (Vec::new(), None::<Instant>);
    fit.run(&model, &adam, &data, loss, |_| {
        let now = Instant::now();
        times.extend(last.replace(now).map(|last| (now - last).as_secs_f64()));
        Go::On
    })?;
    Ok(times)
}
