//! Small training graphs, and what a solver that knows nothing of the frontier has to know of them.
#![allow(dead_code, reason = "not every binary uses all of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::grad::{VjpGraph, vjp_graph};
use tonnage_core::graph::{Builder, Graph, ValueId};
use tonnage_core::row::{Lower, Mem};
use tonnage_core::{Attrs, DType, Emit, Kind, TensorType, Value};
use tonnage_cpu::CpuTarget;
use tonnage_ops::linalg::matmul::MATMUL;
use tonnage_ops::math::{add::ADD, tanh::TANH};
use tonnage_plan::{InputSpec, Machine, PlanOptions, Target, lower};

/// Plans for one thread of a CPU with those rates.
pub fn options(machine: Machine) -> PlanOptions {
    PlanOptions::new(Arc::new(CpuTarget::new(1, machine)))
}
const PLAIN: Attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };

/// Layers of `tanh(h @ w)` of these widths, forward and backward. Each pair of `skips` adds what the first layer made to
/// what the second did; both have the same width.
pub fn network(
    rows: usize,
    widths: &[usize],
    skips: &[(usize, usize)],
) -> (Arc<Graph>, Vec<InputSpec>) {
    let mut builder = Builder::new();
    let mut h = builder.input(TensorType::new(DType::F32, [rows, widths[0]]), Kind::Input, None);
    let mut made: Vec<Value> = Vec::new();
    for (layer, pair) in widths.windows(2).enumerate() {
        let ty = TensorType::new(DType::F32, [pair[0], pair[1]]);
        let w = builder.input(ty, Kind::Variable, None);
        let z = builder.apply(&MATMUL, vec![h, w], PLAIN).unwrap();
        h = builder.apply(&TANH, vec![z], Attrs::None).unwrap();
        made.push(h.clone());
        for (from, _) in skips.iter().filter(|(_, to)| *to == layer) {
            h = builder.apply(&ADD, vec![h, made[*from].clone()], Attrs::None).unwrap();
        }
    }
    let forward = builder.finish(&[h]).unwrap();
    let mut wanted = vec![true; widths.len()];
    wanted[0] = false;
    let what = VjpGraph { seeded: &[true], outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let whole = vjp_graph(&forward, what, &tonnage_ops::GRAD_OPS).unwrap();
    let graph = Arc::new(lower(&whole, &CpuTarget::new(1, Machine::DEFAULT)).unwrap());
    let types = graph.input_types();
    let spec = |ty| InputSpec::contiguous(ty, "test", false).unwrap();
    let inputs = types.iter().map(spec).collect();
    (graph, inputs)
}

/// One node as a solver sees it; values have numbers.
pub struct Work {
    pub reads: Vec<usize>,
    pub makes: Vec<usize>,
    /// Values of the same size that it may overwrite.
    pub over: Vec<usize>,
    /// Its workspace.
    pub room: u64,
    pub seconds: f64,
}

/// All nodes that take time, in the order of the graph.
pub struct Works {
    pub works: Vec<Work>,
    /// Of each value.
    pub sizes: Vec<u64>,
    pub results: Vec<usize>,
}

impl Works {
    pub fn of(graph: &Graph, machine: &Machine) -> Works {
        let mut number: HashMap<usize, usize> = HashMap::new();
        let mut root: Vec<usize> = (0..graph.value_count()).collect();
        let (mut works, mut sizes) = (Vec::new(), Vec::new());
        let target = CpuTarget::new(1, *machine);
        for node in &graph.nodes {
            if let (Lower::View(_), Mem::View(input)) = (node.op.lower, node.op.mem) {
                root[node.outputs[0].index()] = root[node.inputs[input].index()];
                continue;
            }
            if matches!(node.op.lower, Lower::Recipe(_)) {
                continue;
            }
            let find = |id: &ValueId| number.get(&root[id.index()]).copied();
            let size_of = |id: &ValueId| graph.ty(*id).bytes("test").unwrap().rounded().get();
            let mut reads: Vec<usize> = node.inputs.iter().filter_map(find).collect();
            reads.sort_unstable();
            reads.dedup();
            let mut over = Vec::new();
            if let Mem::Reuse(candidates) = node.op.mem {
                let inputs = candidates.iter().filter_map(|i| node.inputs.get(*i));
                let same = |value: &usize| sizes[*value] == size_of(&node.outputs[0]);
                over.extend(inputs.filter_map(find).filter(same));
            }
            let room = graph.with_call(node, |call| target.scratch(node.op, call, &[]));
            let makes: Vec<usize> = (sizes.len()..sizes.len() + node.outputs.len()).collect();
            for id in &node.outputs {
                number.insert(id.index(), sizes.len());
                sizes.push(size_of(id));
            }
            let (room, seconds) = (room.rounded().get(), machine.node(graph, node));
            works.push(Work { reads, makes, over, room, seconds });
        }
        let find = |id: &ValueId| number.get(&root[id.index()]).copied();
        let results = graph.outputs.iter().filter_map(find).collect();
        Works { works, sizes, results }
    }
}
