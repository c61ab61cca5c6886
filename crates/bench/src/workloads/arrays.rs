//! Large arrays: fills and random numbers that are reduced, and chains of elementwise ops.

use tonnage::{DType, Elementwise, Result, Tensor, constant, function, random_normal};

use super::{Limit, Workload, f32s, normal};
use crate::measure::PreparedWorkload;
use crate::sizes::WorkloadSizes;

/// `sum(fill * 2 + 1)`.
pub const SPLAT: Workload = Workload {
    name: "splat",
    sizes: &[("n", 1000)],
    make: |sizes, budget| {
        let n = sizes.get("n");
        reduced(budget, move || ((constant(1.0f32, [n, n, n])? * 2.0)? + 1.0)?.sum_all())
    },
    limit: |_| Limit { flops: 0.0, bytes: 0.0 },
};

/// `mean(normal)`.
pub const RANDOM: Workload = Workload {
    name: "random",
    sizes: &[("n", 1000)],
    make: |sizes, budget| {
        let n = sizes.get("n");
        reduced(budget, move || random_normal([n, n, n], DType::F32)?.mean_all())
    },
    limit: |_| Limit { flops: 0.0, bytes: 0.0 },
};

/// `x * x * 2 + 1`.
pub const CHAIN_POLY: Workload = Workload {
    name: "chain_poly",
    sizes: CHAIN,
    make: |sizes, budget| chain(sizes, budget, |x| ((&x * &x)? * 2.0)? + 1.0),
    limit: pass,
};

/// `gelu(x) * sigmoid(x) + x`.
pub const CHAIN_ACT: Workload = Workload {
    name: "chain_act",
    sizes: CHAIN,
    make: |sizes, budget| chain(sizes, budget, |x| ((&x).gelu()? * (&x).sigmoid()?)? + &x),
    limit: pass,
};

const CHAIN: &[(&str, usize)] = &[("rows", 4096), ("columns", 4096)];

/// Read once, written once.
fn pass(sizes: &WorkloadSizes) -> Limit {
    let count = sizes.float("rows") * sizes.float("columns");
    Limit { flops: 0.0, bytes: f32s(2.0 * count) }
}

fn reduced(
    budget: Option<&str>,
    f: impl Fn() -> Result<Tensor> + 'static,
) -> Result<PreparedWorkload> {
    let mut planned = function(move |()| f());
    if let Some(budget) = budget {
        planned = planned.budget(budget)?;
    }
    Ok(PreparedWorkload {
        step: Box::new(move || planned.call(()).map(drop)),
        state: Box::new(|| Ok(tonnage::Bytes::ZERO)),
        plan: None,
        calls: 1,
    })
}

fn chain(
    sizes: &WorkloadSizes,
    budget: Option<&str>,
    f: fn(Tensor) -> Result<Tensor>,
) -> Result<PreparedWorkload> {
    let x = normal(&[sizes.get("rows"), sizes.get("columns")])?;
    super::training::planned(function(f), x, budget)
}
