//! A gated recurrent layer over a long sequence, trained with plain gradient descent.

use tonnage::nn::{Dense, Recurrent, Sequential};
use tonnage::optim::Optimizer;

use super::training::{cross_entropy, trained};
use super::{Limit, Workload, below, f32s, normal};

pub const GRU: Workload = Workload {
    name: "gru",
    sizes: &[("steps", 512), ("batch", 32), ("inputs", 64), ("hidden", 256)],
    make: |sizes, budget| {
        let [steps, batch, inputs, hidden] =
            ["steps", "batch", "inputs", "hidden"].map(|name| sizes.get(name));
        let model = Sequential::new().then(Recurrent::gru(hidden)).then(Dense::new(10));
        let data = (normal(&[batch, steps, inputs])?, below(10, &[batch])?);
        trained(model, Optimizer::sgd(0.01), data, cross_entropy, budget)
    },
    limit: |sizes| {
        let [steps, batch, inputs, hidden] =
            ["steps", "batch", "inputs", "hidden"].map(|name| sizes.float(name));
        let (of_x, of_h) = (inputs * 3.0 * hidden, hidden * 3.0 * hidden);
        let flops = 2.0 * steps * batch * (2.0 * of_x + 3.0 * of_h);
        Limit { flops, bytes: f32s(2.0 * steps * batch * (inputs + hidden)) }
    },
};
