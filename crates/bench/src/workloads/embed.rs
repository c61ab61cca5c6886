//! A large table of which a step touches a few rows.

use tonnage::nn::{Dense, Embedding, Initializer, Layer, Mode};
use tonnage::optim::{Adagrad, Optimizer};
use tonnage::{Elementwise, Result, Tensor, parameters};

use super::training::trained;
use super::{Limit, Workload, below, f32s, normal};
use crate::measure::PreparedWorkload;
use crate::sizes::WorkloadSizes;

pub const SGD: Workload = Workload {
    name: "embed_sgd",
    sizes: SIZES,
    make: |sizes, budget| make(sizes, Optimizer::sgd(0.1), budget),
    // Rows are read, and read and written by the update.
    limit: |sizes| rows(sizes, 3.0),
};

pub const ADAGRAD: Workload = Workload {
    name: "embed_adagrad",
    sizes: SIZES,
    make: |sizes, budget| make(sizes, Optimizer::new(Adagrad::default(), 0.1), budget),
    // And so are those of what the optimizer remembers.
    limit: |sizes| rows(sizes, 5.0),
};

const SIZES: &[(&str, usize)] = &[("rows", 2_000_000), ("width", 64), ("batch", 4096), ("ids", 16)];

fn rows(sizes: &WorkloadSizes, passes: f64) -> Limit {
    let touched = sizes.float("batch") * sizes.float("ids") * sizes.float("width");
    Limit { flops: 0.0, bytes: f32s(passes * touched) }
}

fn make(
    sizes: &WorkloadSizes,
    optimizer: Optimizer,
    budget: Option<&str>,
) -> Result<PreparedWorkload> {
    let [rows, width, batch, ids] = ["rows", "width", "batch", "ids"].map(|name| sizes.get(name));
    let start = Initializer::Normal(0.0, 0.02);
    let model = Pooled { table: Embedding::new(rows, width).starting(start), head: Dense::new(1) };
    let data = (below(rows, &[batch, ids])?, normal(&[batch, 1])?);
    let loss = |y: &Tensor, wanted: &Tensor| (y - wanted)?.square()?.mean_all();
    trained(model, optimizer, data, loss, budget)
}

/// The mean of some rows, and a number made of that.
struct Pooled {
    table: Embedding,
    head: Dense,
}

parameters!(Pooled { table, head });

impl Layer for Pooled {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.head.forward(&self.table.forward(x, mode)?.mean(1)?, mode)
    }
}
