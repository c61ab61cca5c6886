//! Half precision: values of f32 that lie idle for long are held as bf16 meanwhile, which rounds them to 8 bits of
//! mantissa. Only where the user allows it; the plan lists how many.
//!
//! A value is cast just behind its last use before the idle interval and cast back just before the first one behind it; what
//! reads it before, and what it is made from, stay exact.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::DType;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_ops::math::cast::CAST;

use super::{Variant, VariantBase, VariantSink, VariantSummary};
use crate::order::pressure::Pressure;
use crate::sort;

/// Shares of the bytes that are idle: the largest values first.
const SHARES: [f64; 2] = [0.5, 1.0];
/// Values below this are not worth two more steps.
const LEAST: u64 = 4096;
/// Nodes that an idle interval must be long, at least.
const IDLE: usize = 4;

/// A value that is idle.
#[derive(Debug, Clone, Copy)]
struct IdleValue {
    root: ValueId,
    /// The last node that uses it before the idle interval.
    from: usize,
    /// The first one behind it.
    to: usize,
    bytes: u64,
}

/// The graph with idle values held in bf16.
pub fn variants(
    graph: &Arc<Graph>,
    pressure: &Pressure,
    base: &VariantBase,
    sink: &mut impl VariantSink,
) {
    let mut idle = idle(graph, pressure);
    sort::by_key(&mut idle, |i| (std::cmp::Reverse(i.bytes), i.from, i.root));
    let total: u64 = idle.iter().map(|i| i.bytes).sum();
    let mut before = 0;
    for share in SHARES {
        let mut sum = 0;
        let count = idle
            .iter()
            .take_while(|i| {
                let more = (sum as f64) < share * total as f64;
                sum += i.bytes;
                more
            })
            .count();
        if count == before {
            continue;
        }
        before = count;
        let halved = Arc::new(halved(graph, &pressure.root, &idle[..count]));
        let (mut variant, program) = Variant::of(halved, base.inputs, base.target, base.machine);
        variant.seconds = base.slower(variant.seconds);
        variant.used = VariantSummary { in_bf16: count, ..variant.used };
        let choices = super::super::points(std::slice::from_ref(&program));
        let points = choices.into_iter().map(|choice| variant.point(choice.sketch)).collect();
        sink.add(variant, points);
    }
}

fn idle(graph: &Graph, pressure: &Pressure) -> Vec<IdleValue> {
    let mut uses: Vec<Vec<usize>> = vec![Vec::new(); pressure.size.len()];
    for (at, needs) in pressure.nodes.iter().enumerate() {
        for root in needs.makes.iter().chain(&needs.reads) {
            uses[*root as usize].push(at);
        }
    }
    let mut written = vec![false; pressure.size.len()];
    for node in &graph.nodes {
        for (input, _) in node.updates() {
            written[pressure.root[node.inputs[input].index()] as usize] = true;
        }
    }
    let of = |(root, uses): (usize, &Vec<usize>)| {
        let id = ValueId::new(root);
        let idle = uses.windows(2).map(|w| (w[0], w[1])).max_by_key(|(a, b)| b - a)?;
        let fits = pressure.in_arena[root]
            && !pressure.stays[root]
            && !written[root]
            && graph.ty(id).dtype == DType::F32
            && pressure.size[root] >= LEAST
            && idle.1 - idle.0 >= IDLE;
        fits.then_some(IdleValue { root: id, from: idle.0, to: idle.1, bytes: pressure.size[root] })
    };
    uses.iter().enumerate().filter_map(of).collect()
}

/// The graph with these values cast and cast back.
fn halved(graph: &Graph, root: &[u32], idle: &[IdleValue]) -> Graph {
    let mut making = Halving { graph, root, made: graph.clone(), now: HashMap::new() };
    making.made.nodes = Vec::with_capacity(graph.nodes.len() + 2 * idle.len());
    let (mut behind, mut before): (HashMap<usize, Vec<ValueId>>, HashMap<usize, Vec<ValueId>>) =
        (HashMap::new(), HashMap::new());
    for i in idle {
        behind.entry(i.from).or_default().push(i.root);
        before.entry(i.to).or_default().push(i.root);
    }
    let mut halves: HashMap<ValueId, ValueId> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for id in before.get(&at).into_iter().flatten() {
            if let Some(half) = halves.get(id) {
                let widened = making.cast(*half, *id, DType::F32, node);
                making.now.insert(*id, widened);
            }
        }
        let mut copy = node.clone();
        for id in &mut copy.inputs {
            *id = making.resolve(*id);
        }
        making.made.nodes.push(copy);
        for id in behind.get(&at).into_iter().flatten() {
            let half = making.cast(*id, *id, DType::BF16, node);
            halves.insert(*id, half);
        }
    }
    making.made
}

struct Halving<'g> {
    graph: &'g Graph,
    root: &'g [u32],
    made: Graph,
    /// The replacement of a value that was cast back, or a view of one.
    now: HashMap<ValueId, ValueId>,
}

impl Halving<'_> {
    /// A cast of a value; the result is what `of` is but for its dtype.
    fn cast(&mut self, from: ValueId, of: ValueId, dtype: DType, near: &Node) -> ValueId {
        let mut info = self.graph.value(of).clone();
        info.ty.dtype = dtype;
        let made = self.made.add_value(info);
        self.made.nodes.push(Node {
            op: &CAST,
            attrs: Attrs::DType(dtype),
            inputs: vec![from],
            outputs: vec![made],
            aux: false,
            regions: Vec::new(),
            source: near.source,
        });
        made
    }

    /// The current replacement of a value: itself, what it was cast back to, or a view of that.
    fn resolve(&mut self, id: ValueId) -> ValueId {
        if let Some(now) = self.now.get(&id) {
            return *now;
        }
        let root = ValueId::new(self.root[id.index()] as usize);
        if root == id || !self.now.contains_key(&root) {
            return id;
        }
        let graph = self.graph;
        let Some(maker) = graph.nodes.iter().find(|n| n.outputs.contains(&id)) else { return id };
        let mut view = maker.clone();
        view.inputs = view.inputs.into_iter().map(|input| self.resolve(input)).collect();
        let made = self.made.add_value(graph.value(id).clone());
        view.outputs = vec![made];
        self.made.nodes.push(view);
        self.now.insert(id, made);
        made
    }
}
