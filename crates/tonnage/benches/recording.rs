//! What recording a timeline takes of a training step: turns with and without, in one run. At most 3% is the aim.

use std::time::Instant;

use tonnage::nn::{
    Activation, Convolution, Dense, Flatten, Layer, MaxPool, Mode, Parameters, Sequential,
};
use tonnage::optim::Optimizer;
use tonnage::{
    Conv, DType, GradientTape, Pool, Result, Tensor, function, memory, random_normal, tensor,
};

/// Steps in a turn, and turns of each kind: short ones, many, so that what disturbs the machine disturbs both alike.
const STEPS: usize = 10;
const TURNS: usize = 301;

fn main() -> Result<()> {
    let model = Sequential::new()
        .then(Convolution::new(16, &[3, 3], Conv::same()))
        .then(Activation::Relu)
        .then(MaxPool(Pool::of(2)))
        .then(Flatten)
        .then(Dense::new(64))
        .then(Activation::Relu)
        .then(Dense::new(10));
    let optimizer = Optimizer::adam(0.001);
    let step = function(move |(x, y): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let loss = model.forward(&x, Mode::Training)?.sparse_cross_entropy(&y)?.mean_all()?;
        let variables = model.trainable();
        let gradients = tape.gradient(&loss, &variables)?;
        optimizer.apply(&variables, &gradients)?;
        Ok(loss)
    });
    let drawn = random_normal([32, 8, 8, 1], DType::F32)?.to_vec::<f32>()?;
    let x = tensor(drawn)?.reshape([32, 8, 8, 1])?;
    let y = tensor((0..32).map(|i| i % 10).collect::<Vec<i64>>())?;
    let turn = || -> Result<f64> {
        let start = Instant::now();
        for _ in 0..STEPS {
            step.call((x.clone(), y.clone()))?;
        }
        Ok(start.elapsed().as_secs_f64() / STEPS as f64)
    };
    turn()?;
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for number in 0..TURNS {
        // Each goes first in every other turn.
        if number % 2 == 0 {
            off.push(turn()?);
        }
        let recording = memory::record("cpu:0")?;
        on.push(turn()?);
        let timeline = recording.finish();
        assert_eq!(timeline.calls.len(), STEPS);
        if number % 2 == 1 {
            off.push(turn()?);
        }
    }
    off.sort_by(f64::total_cmp);
    on.sort_by(f64::total_cmp);
    let (off, on) = (off[TURNS / 2], on[TURNS / 2]);
    println!(
        "a step: {:.1} us, recorded {:.1} us, {:+.2}%",
        off * 1e6,
        on * 1e6,
        (on / off - 1.0) * 100.0
    );
    Ok(())
}
