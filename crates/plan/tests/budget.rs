//! The frontier: less memory for more time, to the byte, and monotone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::sync::Arc;

use tonnage_core::grad::{VjpGraph, vjp_graph};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::{Attrs, Bytes, DType, Emit, Kind, TensorType, Value};
use tonnage_cpu::CpuTarget;
use tonnage_ops::linalg::matmul::MATMUL;
use tonnage_ops::math::{add::ADD, tanh::TANH};
use tonnage_plan::{Allowed, Frontier, InputSpec, Machine, Plan, PlanOptions, lower, plan};

const PLAIN: Attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };

/// Layers of `tanh(h @ w)` on `rows` rows, forward and backward; every fourth adds what came in before.
fn network(layers: usize, rows: usize, width: usize, skips: bool) -> (Arc<Graph>, Vec<InputSpec>) {
    let mut builder = Builder::new();
    let state = TensorType::new(DType::F32, [rows, width]);
    let weight = TensorType::new(DType::F32, [width, width]);
    let mut h = builder.input(state, Kind::Input, None);
    let mut skip = h.clone();
    for layer in 0..layers {
        let w = builder.input(weight.clone(), Kind::Variable, None);
        let z: Value = builder.apply(&MATMUL, vec![h, w], PLAIN).unwrap();
        h = builder.apply(&TANH, vec![z], Attrs::None).unwrap();
        if skips && layer % 4 == 3 {
            h = builder.apply(&ADD, vec![h, skip], Attrs::None).unwrap();
            skip = h.clone();
        }
    }
    let forward = builder.finish(&[h]).unwrap();
    let wanted = vec![true; layers + 1];
    let what = VjpGraph { seeded: &[true], outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let whole = vjp_graph(&forward, what, &tonnage_ops::GRAD_OPS).unwrap();
    let graph = Arc::new(lower(&whole, &CpuTarget::new(1, Machine::DEFAULT)).unwrap());
    let inputs = graph
        .input_types()
        .iter()
        .map(|ty| InputSpec::contiguous(ty, "test", false).unwrap())
        .collect();
    (graph, inputs)
}

/// Plans for one thread of a CPU with those rates.
fn options(machine: Machine) -> PlanOptions {
    PlanOptions::new(Arc::new(CpuTarget::new(1, machine)))
}

fn frontier(graph: &Arc<Graph>, inputs: &[InputSpec]) -> Frontier {
    Frontier::of(graph, inputs, options(Machine::DEFAULT)).unwrap()
}

/// What the arena holds besides results, which are the gradients of the weights.
fn activations(plan: &Plan) -> u64 {
    let results: Bytes = plan.buffers.iter().filter(|b| b.outlives_call).map(|b| b.bytes).sum();
    plan.arena.get().saturating_sub(results.get())
}

#[test]
fn a_chain_fits_in_the_memory_of_about_two_square_roots_of_its_layers() {
    let (layers, rows, width) = (100, 4096, 16);
    let (graph, inputs) = network(layers, rows, width, false);
    // Recomputing is the only lever.
    let machine = Machine::DEFAULT.without_disk();
    let frontier =
        Frontier::allowing(Allowed::EXACT, &graph, &[], &inputs, options(machine)).unwrap();
    let state = (rows * width * 4) as u64;
    let unlimited = frontier.plan(0).unwrap();
    assert_eq!(unlimited.peak(), plan(&graph, &inputs, options(machine)).unwrap().peak());
    let last = frontier.plan(frontier.points() - 1).unwrap();
    assert!(activations(&unlimited) > 100 * state);
    assert!(activations(&last) < 24 * state, "{last}");
    let fitted = last.fitted.unwrap();
    assert!(fitted.seconds < 1.35 * fitted.unlimited_seconds, "{fitted:?}");
}

#[test]
fn a_lower_budget_never_gives_a_higher_peak_and_the_least_one_works() {
    for skips in [false, true] {
        let (graph, inputs) = network(40, 1024, 16, skips);
        let frontier = frontier(&graph, &inputs);
        let unlimited = frontier.plan(0).unwrap().peak();
        let mut before = unlimited;
        for percent in (1..=100).rev() {
            let budget = Bytes::new(unlimited.get() * percent / 100);
            match frontier.fit(budget).unwrap() {
                Ok(plan) => {
                    assert!(plan.peak() <= budget, "{} over {budget}", plan.peak());
                    assert!(plan.peak() <= before, "{} after {before}", plan.peak());
                    plan.graph.verify().unwrap();
                    before = plan.peak();
                }
                Err(least) => {
                    let works = frontier.fit(least.peak()).unwrap().unwrap();
                    assert_eq!(works.peak(), least.peak());
                    let under = Bytes::new(least.peak().get() - 1);
                    assert!(frontier.fit(under).unwrap().is_err());
                }
            }
        }
        assert!(before < unlimited);
    }
}

#[test]
fn a_file_makes_the_least_less_and_nothing_slower() {
    let (graph, inputs) = network(40, 4096, 16, true);
    let exact = |machine: Machine| {
        Frontier::allowing(Allowed::EXACT, &graph, &[], &inputs, options(machine)).unwrap()
    };
    let without = exact(Machine::DEFAULT.without_disk());
    let with = exact(Machine::DEFAULT);
    let least = |frontier: &Frontier| frontier.fit(Bytes::new(1)).unwrap().unwrap_err();
    let (low, lower) = (least(&without), least(&with));
    assert!(lower.peak() < low.peak(), "{} with a file, {} without", lower.peak(), low.peak());
    assert!(low.spilled().is_zero() && !lower.spilled().is_zero());
    lower.graph.verify().unwrap();
    let unlimited = with.plan(0).unwrap().peak();
    for percent in [80, 60, 50, 40] {
        let budget = Bytes::new(unlimited.get() * percent / 100);
        let fitted =
            |frontier: &Frontier| frontier.fit(budget).unwrap().ok().map(|p| p.fitted.unwrap());
        let (Some(recompute), Some(file)) = (fitted(&without), fitted(&with)) else {
            panic!("{percent}% does not fit");
        };
        assert!(file.seconds <= 1.05 * recompute.seconds, "at {percent}%: {file:?}, {recompute:?}");
    }
}

#[test]
fn a_quick_disk_is_used_where_recomputing_takes_long_and_a_slow_one_is_not() {
    let (graph, inputs) = network(16, 4096, 256, false);
    let at_half = |machine: Machine| {
        let frontier =
            Frontier::allowing(Allowed::EXACT, &graph, &[], &inputs, options(machine)).unwrap();
        let plan = frontier.plan(0).unwrap();
        let results: Bytes = plan.buffers.iter().filter(|b| b.outlives_call).map(|b| b.bytes).sum();
        let budget = plan.peak() - Bytes::new((plan.arena - results).get() / 2);
        let plan = frontier.fit(budget).unwrap().map_err(|least| least.peak()).unwrap();
        plan.fitted.unwrap()
    };
    let slow = Machine { flops: 1e9, ..Machine::DEFAULT };
    let fitted = at_half(slow);
    assert!(fitted.recomputed == 0 && !fitted.spilled.is_zero(), "{fitted:?}");
    // Hidden behind the computing but for what memory has to do twice.
    assert!(fitted.seconds < 1.01 * fitted.unlimited_seconds, "{fitted:?}");
    let fitted = at_half(Machine { write: 1e6, read: 1e6, ..Machine::DEFAULT });
    assert!(fitted.recomputed > 0 && fitted.spilled.is_zero(), "{fitted:?}");
}
