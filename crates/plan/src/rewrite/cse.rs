//! Common subexpressions, that is, when two nodes are the same: the same op with the same attributes on the same
//! values, and the same regions, however the values in them are numbered.
//!
//! A digest says the same of whole expressions: it depends on what a value is made of and not on where it
//! stands, so operands can be put in an order that is the same in every program that says the same thing.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::recipe::Key;
use tonnage_core::row::{Lower, OpDef};

/// What a node computes, given what its inputs compute.
pub(super) fn digest(op: &OpDef, attrs: &Attrs, inputs: &[u64], regions: &[u64]) -> u64 {
    // The name and not the address, which differs from run to run: the order of operands follows from this.
    let mut hasher = DefaultHasher::new();
    op.name.hash(&mut hasher);
    if *attrs != Attrs::None {
        attrs.hash(&mut hasher);
    }
    inputs.hash(&mut hasher);
    regions.hash(&mut hasher);
    hasher.finish()
}

/// The output of that number of something.
pub(super) fn part(whole: u64, output: usize) -> u64 {
    match output {
        0 => whole,
        n => {
            let mut hasher = DefaultHasher::new();
            (whole, n).hash(&mut hasher);
            hasher.finish()
        }
    }
}

/// What a graph computes.
pub(super) fn graph_digest(graph: &Graph) -> u64 {
    let (nodes, values) = digested(graph);
    let mut hasher = DefaultHasher::new();
    for made in nodes {
        made.hash(&mut hasher);
    }
    for id in &graph.outputs {
        values[id.index()].hash(&mut hasher);
    }
    hasher.finish()
}

/// What each node of a graph computes. A value that is written to a file and read back counts as the same value.
pub(crate) fn digests(graph: &Graph) -> Vec<u64> {
    digested(graph).0
}

/// By node, and by value.
fn digested(graph: &Graph) -> (Vec<u64>, Vec<u64>) {
    let mut values = vec![0u64; graph.value_count()];
    for (i, id) in graph.inputs.iter().enumerate() {
        values[id.index()] = part(1, i + 1);
    }
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let inputs: Vec<u64> = node.inputs.iter().map(|id| values[id.index()]).collect();
        let made = match (node.op.lower, inputs.first()) {
            (Lower::Transfer(_), Some(same)) => *same,
            _ => {
                let regions: Vec<u64> = node.regions.iter().map(|g| graph_digest(g)).collect();
                digest(node.op, &node.attrs, &inputs, &regions)
            }
        };
        for (k, id) in node.outputs.iter().enumerate() {
            values[id.index()] = part(made, k);
        }
        nodes.push(made);
    }
    (nodes, values)
}

/// Whether two graphs are the same, node by node.
pub(super) fn same_graph(a: &Graph, b: &Graph) -> bool {
    if std::ptr::eq(a, b) {
        return true;
    }
    let alike = a.inputs.len() == b.inputs.len()
        && a.nodes.len() == b.nodes.len()
        && a.outputs.len() == b.outputs.len();
    if !alike {
        return false;
    }
    // For each value of `a`, the one of `b` that it is.
    let mut other: Vec<Option<ValueId>> = vec![None; a.value_count()];
    for (x, y) in a.inputs.iter().zip(&b.inputs) {
        if a.ty(*x) != b.ty(*y) {
            return false;
        }
        other[x.index()] = Some(*y);
    }
    let matches = |other: &[Option<ValueId>], xs: &[ValueId], ys: &[ValueId]| {
        xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| other[x.index()] == Some(*y))
    };
    for (x, y) in a.nodes.iter().zip(&b.nodes) {
        let same = x.op == y.op
            && x.aux == y.aux
            && x.attrs == y.attrs
            && x.outputs.len() == y.outputs.len()
            && matches(&other, &x.inputs, &y.inputs)
            && same_regions(x, y);
        if !same {
            return false;
        }
        for (x, y) in x.outputs.iter().zip(&y.outputs) {
            other[x.index()] = Some(*y);
        }
    }
    matches(&other, &a.outputs, &b.outputs)
}

pub(super) fn same_regions(a: &Node, b: &Node) -> bool {
    a.regions.len() == b.regions.len()
        && a.regions.iter().zip(&b.regions).all(|(x, y)| same_graph(x, y))
}

/// Whether a graph draws random numbers that are fresh wherever it stands: then two of the same are not equal.
pub(super) fn draws(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| {
        matches!(node.attrs, Attrs::Random { key: Key::PerCall(_), .. })
            || node.regions.iter().any(|g| draws(g))
    })
}
