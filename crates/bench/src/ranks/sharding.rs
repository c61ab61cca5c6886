//! Training on several ranks: what each holds, sends and takes, for every sharding.

use tonnage::data::Dataset;
use tonnage::nn::{Dense, Parameters, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Fit, Go, Sharding};
use tonnage::world::World;
use tonnage::{Bytes, ErrorKind, Result, Tensor, ones, zeros};

use super::say;

/// Layers, their width, and the rows of a batch.
const LAYERS: usize = 8;
const WIDTH: usize = 2048;
const BATCH: usize = 16;
/// Steps of each sharding.
const STEPS: usize = 5;

pub fn print(world: &World) -> Result<()> {
    let what = format!("{LAYERS} layers of {WIDTH} x {WIDTH}, Adam, {BATCH} rows a rank");
    say(world, &format!("{what}; in parameters"));
    for sharding in Sharding::ALL {
        say(world, &trained(world, sharding)?);
    }
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
        let tried = fit.clone().budget(Bytes::new(1).into()).predict(&model, &adam, &data, loss);
        if let Err(error) = tried {
            let ErrorKind::OverBudget { least: Some(least), .. } = error.kind() else {
                return Err(error);
            };
            fit = fit.budget((*least).into());
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
