//! `h = tanh(h @ w)` in a loop, and its gradient.

use tonnage::{Elementwise, GradientTape, Result, Tensor, fori_loop, function, tensor};

use super::training::planned;
use super::{Limit, Workload, f32s, normal};
use crate::measure::PreparedWorkload;
use crate::sizes::WorkloadSizes;

/// The loop alone.
pub const FORWARD: Workload = Workload {
    name: "loop_fwd",
    sizes: &[("iterations", 200), ("n", 512)],
    make: |sizes, budget| {
        let iterations = sizes.get("iterations") as i64;
        let f = function(move |(h, w): (Tensor, Tensor)| {
            fori_loop(0, iterations, h, |_, h: Tensor| h.matmul(&w)?.tanh())
        });
        planned(f, start(sizes.get("n"))?, budget)
    },
    limit: |sizes| products(sizes, 1.0),
};

/// Its gradient by `w`.
pub const GRAD_250: Workload = gradient("loop_grad_250", &[("iterations", 250), ("n", 256)]);
pub const GRAD_1000: Workload = gradient("loop_grad_1000", &[("iterations", 1000), ("n", 256)]);
pub const GRAD_4000: Workload = gradient("loop_grad_4000", &[("iterations", 4000), ("n", 256)]);

const fn gradient(name: &'static str, sizes: &'static [(&'static str, usize)]) -> Workload {
    Workload { name, sizes, make: make_gradient, limit: |sizes| products(sizes, 3.0) }
}

fn make_gradient(sizes: &WorkloadSizes, budget: Option<&str>) -> Result<PreparedWorkload> {
    let iterations = sizes.get("iterations") as i64;
    let f = function(move |(h, w): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&w);
        let last = fori_loop(0, iterations, h, |_, h: Tensor| h.matmul(&w)?.tanh())?;
        tape.gradient(&last.sum_all()?, &[&w])?[0].tensor()
    });
    planned(f, start(sizes.get("n"))?, budget)
}

/// `each` products an iteration.
fn products(sizes: &WorkloadSizes, each: f64) -> Limit {
    let (iterations, n) = (sizes.float("iterations"), sizes.float("n"));
    Limit { flops: each * iterations * 2.0 * n.powi(3), bytes: f32s(2.0 * n * n) }
}

/// Where it starts, and the sine transform, which is orthogonal. A random matrix shrinks or grows what goes
/// through it thousands of times until it is subnormal or infinite.
fn start(n: usize) -> Result<(Tensor, Tensor)> {
    let (step, scale) = (std::f64::consts::PI / (n + 1) as f64, (2.0 / (n + 1) as f64).sqrt());
    let at = |i: usize, j: usize| (scale * ((i * j) as f64 * step).sin()) as f32;
    let rows: Vec<Vec<f32>> = (1..=n).map(|i| (1..=n).map(|j| at(i, j)).collect()).collect();
    Ok((normal(&[n, n])?, tensor(rows)?))
}
