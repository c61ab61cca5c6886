//! How far the ladder is from the best there is: on graphs small enough to search through all ways to run them.
//!
//! The search knows nothing of the ladder. A state is the set of values that are in memory; computing a node costs its
//! time and needs its inputs there and room for its outputs and workspace; dropping a value costs nothing. Dijkstra's
//! algorithm then finds the least time in which all results can be there, over all orders and any number of
//! recomputations of anything: no integer program over the same choices could do better.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use tonnage_core::grad::{VjpGraph, vjp_graph};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::row::{Lower, Mem};
use tonnage_core::{Attrs, Bytes, DType, Emit, Kind, TensorType, Value};
use tonnage_ops::linalg::matmul::MATMUL;
use tonnage_ops::math::{add::ADD, tanh::TANH};
use tonnage_plan::{Allowed, InputSpec, Ladder, Machine, Options, lower};

const PLAIN: Attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
const OPTIONS: Options = Options { threads: 1, outputs_given: false };

/// Layers of `tanh(h @ w)` of these widths, forward and backward; with a skip, the last adds what the first made.
fn network(rows: usize, widths: &[usize], skip: bool) -> (Arc<Graph>, Vec<InputSpec>) {
    let mut builder = Builder::new();
    let mut h = builder.input(TensorType::new(DType::F32, [rows, widths[0]]), Kind::Input, None);
    let mut first: Option<Value> = None;
    for pair in widths.windows(2) {
        let ty = TensorType::new(DType::F32, [pair[0], pair[1]]);
        let w = builder.input(ty, Kind::Variable, None);
        let z = builder.apply(&MATMUL, vec![h, w], PLAIN).unwrap();
        h = builder.apply(&TANH, vec![z], Attrs::None).unwrap();
        first.get_or_insert(h.clone());
    }
    if let (true, Some(first)) = (skip, first) {
        h = builder.apply(&ADD, vec![h, first], Attrs::None).unwrap();
    }
    let forward = builder.finish(&[h]).unwrap();
    let mut wanted = vec![true; widths.len()];
    wanted[0] = false;
    let what = VjpGraph { seeded: &[true], wanted: &wanted, known: &[], sums: &[] };
    let whole = vjp_graph(&forward, what, &tonnage_ops::GRAD_OPS).unwrap();
    let graph = Arc::new(lower(&whole).unwrap());
    let types = graph.input_types();
    let spec = |ty| InputSpec::contiguous(ty, "test", false).unwrap();
    let inputs = types.iter().map(spec).collect();
    (graph, inputs)
}

/// One node as the search sees it; values are bits.
struct Work {
    reads: u32,
    makes: u32,
    /// A value of the same size that it may overwrite.
    over: Vec<u32>,
    room: u64,
    seconds: f64,
}

struct Search {
    works: Vec<Work>,
    sizes: Vec<u64>,
    results: u32,
}

impl Search {
    fn of(graph: &Graph, machine: &Machine) -> Search {
        let mut bit: HashMap<usize, u32> = HashMap::new();
        let mut root: Vec<usize> = (0..graph.value_count()).collect();
        let (mut works, mut sizes) = (Vec::new(), Vec::new());
        for node in &graph.nodes {
            if let (Lower::View(_), Mem::View(input)) = (node.op.lower, node.op.mem) {
                root[node.outputs[0].index()] = root[node.inputs[input].index()];
                continue;
            }
            if matches!(node.op.lower, Lower::Recipe(_)) {
                continue;
            }
            let find = |id: &tonnage_core::ValueId| bit.get(&root[id.index()]).copied();
            let reads = node.inputs.iter().filter_map(&find).fold(0, |set, b| set | 1 << b);
            let size_of =
                |id: &tonnage_core::ValueId| graph.ty(*id).bytes("test").unwrap().rounded();
            let mut over = Vec::new();
            if let Mem::Reuse(candidates) = node.op.mem {
                let inputs = candidates.iter().filter_map(|i| node.inputs.get(*i));
                let same = |b: &u32| sizes[*b as usize] == size_of(&node.outputs[0]).get();
                over.extend(inputs.filter_map(&find).filter(same));
            }
            let scratch = graph.with_call(node, |call| (node.op.scratch)(call, OPTIONS.threads));
            let mut makes = 0;
            for id in &node.outputs {
                let b = sizes.len() as u32;
                bit.insert(id.index(), b);
                sizes.push(size_of(id).get());
                makes |= 1 << b;
            }
            let (room, seconds) = (scratch.rounded().get(), machine.node(graph, node));
            works.push(Work { reads, makes, over, room, seconds });
        }
        let find = |id: &tonnage_core::ValueId| bit.get(&root[id.index()]).copied();
        let results = graph.outputs.iter().filter_map(find).fold(0, |set, b| set | 1 << b);
        Search { works, sizes, results }
    }

    fn bytes(&self, set: u32) -> u64 {
        (0..self.sizes.len()).filter(|b| set >> b & 1 == 1).map(|b| self.sizes[b]).sum()
    }

    /// The least time within so many bytes of arena.
    fn least_seconds(&self, arena: u64) -> Option<f64> {
        // Whole nanoseconds of a thousandth, so that times have an order.
        let ticks = |seconds: f64| (seconds * 1e12) as u64;
        let mut best: HashMap<u32, u64> = HashMap::from([(0, 0)]);
        let mut open = BinaryHeap::from([Reverse((0u64, 0u32))]);
        while let Some(Reverse((time, set))) = open.pop() {
            if set & self.results == self.results {
                return Some(time as f64 / 1e12);
            }
            if best.get(&set).is_some_and(|b| *b < time) {
                continue;
            }
            let mut reach = |set: u32, time: u64| {
                if best.get(&set).is_none_or(|b| time < *b) {
                    best.insert(set, time);
                    open.push(Reverse((time, set)));
                }
            };
            let held = self.bytes(set);
            for work in &self.works {
                if set & work.reads != work.reads || set & work.makes == work.makes {
                    continue;
                }
                let after = time + ticks(work.seconds);
                let more = self.bytes(work.makes & !set);
                if held + more + work.room <= arena {
                    reach(set | work.makes, after);
                }
                for b in &work.over {
                    let first = self.sizes[*b as usize];
                    if held + more - first + work.room <= arena {
                        reach(set & !(1 << b) | work.makes, after);
                    }
                }
            }
            for b in (0..self.sizes.len()).filter(|b| set >> b & 1 == 1) {
                // Results stay: to drop one would only mean to make it again.
                if self.results >> b & 1 == 0 {
                    reach(set & !(1 << b), time);
                }
            }
        }
        None
    }
}

#[test]
fn the_ladder_is_within_a_twentieth_of_the_best_on_average() {
    let graphs = [
        network(4096, &[32, 32, 32, 32, 32], false),
        network(4096, &[32, 32, 32, 32, 32], true),
        network(4096, &[16, 64, 16, 64, 16], false),
        network(2048, &[64, 32, 128, 32, 16], false),
        network(8192, &[8, 64, 32, 16, 64], true),
        network(4096, &[64, 64, 64, 64], true),
    ];
    let machine = Machine::DEFAULT.without_disk();
    let (mut sum, mut count) = (0.0, 0);
    for (graph, inputs) in &graphs {
        let search = Search::of(graph, &machine);
        assert!(search.sizes.len() <= 24, "{} values", search.sizes.len());
        let ladder = Ladder::allowing(Allowed::EXACT, graph, inputs, OPTIONS, &machine).unwrap();
        let free = search.least_seconds(u64::MAX).unwrap();
        let mut last = Bytes::new(u64::MAX);
        for rung in 0..ladder.rungs() {
            let plan = ladder.plan(rung).unwrap();
            if plan.peak() >= last {
                continue;
            }
            last = plan.peak();
            let arena = plan.arena + plan.own_outputs();
            let took = plan.fitted.unwrap().seconds;
            // A rung may fit where the search knows no way: what runs again is fused anew.
            let Some(best) = search.least_seconds(arena.get()) else { continue };
            let over = (took / best - 1.0).max(0.0);
            println!("{arena:>12} {:.3} {:.3} of the least time", took / free, took / best);
            (sum, count) = (sum + over, count + 1);
        }
    }
    let mean = sum / f64::from(count);
    println!("{count} rungs, {:.2}% over the best on average", mean * 100.0);
    assert!(count >= 12 && mean <= 0.05, "{count} rungs, {mean}");
}
