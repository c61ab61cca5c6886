//! A part that is saved for the backward pass gets bytes of its own, where looking at it would hold a whole that nothing else
//! else needs: a third of a product's columns, say, once gates were split from it.
//!
//! A copy moves the part once more. It is worth that where at least half of the whole goes free.

use std::collections::HashMap;

use tonnage_core::Kind;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId, ValueInfo};
use tonnage_ops::math::identity::IDENTITY;

use super::checked;
use super::updates::roots;

/// The graph with copies of such parts, each right behind where it is made.
pub(crate) fn parts_alone(mut graph: Graph) -> Result<Graph> {
    let saved = saved_parts(&graph);
    if saved.is_empty() {
        return Ok(graph);
    }
    let mut copies: HashMap<ValueId, ValueId> = HashMap::new();
    for mut node in std::mem::take(&mut graph.nodes) {
        if is_backward(&graph, &node) {
            for id in &mut node.inputs {
                *id = copies.get(id).copied().unwrap_or(*id);
            }
        }
        let made: Vec<ValueId> =
            node.outputs.iter().copied().filter(|id| saved.contains(id)).collect();
        let source = node.source;
        graph.nodes.push(node);
        for part in made {
            let info: ValueInfo = graph.value(part).clone();
            let copy = graph.add_value(info);
            graph.nodes.push(Node {
                op: &IDENTITY,
                attrs: Attrs::None,
                inputs: vec![part],
                outputs: vec![copy],
                aux: false,
                regions: Vec::new(),
                source,
            });
            copies.insert(part, copy);
        }
    }
    checked(graph)
}

/// Whether a node is of the backward pass.
fn is_backward(graph: &Graph, node: &Node) -> bool {
    node.outputs.first().is_some_and(|id| graph.value(*id).kind == Kind::Gradient)
}

/// Parts that the backward pass reads, of wholes that it reads nothing else of.
fn saved_parts(graph: &Graph) -> Vec<ValueId> {
    let roots = roots(graph.value_count(), &graph.nodes);
    let bytes = |id: ValueId| graph.ty(id).bytes("part").ok().map_or(u64::MAX, |b| b.get());
    let mut read: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    for node in graph.nodes.iter().filter(|node| is_backward(graph, node)) {
        for id in &node.inputs {
            let parts = read.entry(roots[id.index()]).or_default();
            if !parts.contains(id) {
                parts.push(*id);
            }
        }
    }
    // What comes in or goes out is there anyway.
    for id in graph.inputs.iter().chain(&graph.outputs) {
        read.remove(&roots[id.index()]);
    }
    let forward = graph.nodes.iter().filter(|node| !is_backward(graph, node));
    let mut saved = Vec::new();
    for whole in forward.flat_map(|node| &node.outputs) {
        let Some(parts) = read.get(whole) else { continue };
        let all = parts.iter().fold(0u64, |sum, id| sum.saturating_add(bytes(*id)));
        if bytes(*whole) != u64::MAX && all <= bytes(*whole) / 2 {
            saved.extend(parts.iter().copied());
        }
    }
    saved
}
