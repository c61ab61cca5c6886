//! Updates of variables: behind what can fail, and with a copy before them of what is read later.
//!
//! Decision: `docs/decisions/values-of-variables-are-copied-out.md`.

use std::collections::HashMap;

use smallvec::SmallVec;
use tonnage_core::Kind;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId, ValueInfo};
use tonnage_core::row::Mem;
use tonnage_ops::math::identity::IDENTITY;

use super::checked;

/// Moves updates of variables, and what depends on them, behind the last node that can fail without
/// depending on one: a call that fails leaves variables as they were. Updates behind that node stay
/// where they are, so that a gradient need not wait for all others.
pub(crate) fn updates_wait(mut graph: Graph) -> Result<Graph> {
    let mut after = vec![false; graph.value_count()];
    let mut waits: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    // What calls the program around stays in its order: behind one that waits, the next waits too.
    let mut calls_wait = false;
    let deciders = graph.size_deciders();
    for (at, node) in graph.nodes.iter().enumerate() {
        let calls = node.calls_host() && node.has_effect();
        let wait = !node.updates().is_empty()
            || deciders.get(at).into_iter().flatten().any(|by| waits[*by])
            || node.inputs.iter().any(|id| after[id.index()])
            || (calls && calls_wait);
        calls_wait |= calls && wait;
        for id in node.outputs.iter().filter(|_| wait) {
            after[id.index()] = true;
        }
        waits.push(wait);
    }
    let last = graph.nodes.iter().zip(&waits).rposition(|(node, waits)| !waits && node.can_fail());
    let Some(last) = last else { return Ok(graph) };
    let nodes = std::mem::take(&mut graph.nodes);
    let (mut first, mut waiting, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (node, waits)) in nodes.into_iter().zip(waits).enumerate() {
        match (at <= last, waits) {
            (true, false) => first.push(node),
            (true, true) => waiting.push(node),
            (false, _) => rest.push(node),
        }
    }
    graph.nodes = first.into_iter().chain(waiting).chain(rest).collect();
    checked(graph)
}

/// Gives a value that is read after its bytes are updated a copy that is made before.
///
/// Program order may read a variable's old value after an update: in SSA that is the value before, whose
/// bytes the update overwrites.
pub(crate) fn protect_reads(mut graph: Graph) -> Result<Graph> {
    if graph.nodes.iter().all(|n| n.updates().is_empty()) {
        return Ok(graph);
    }
    let mut last_read = vec![0; graph.value_count()];
    for (at, node) in graph.nodes.iter().enumerate() {
        for id in &node.inputs {
            last_read[id.index()] = at;
        }
    }
    for id in &graph.outputs {
        last_read[id.index()] = usize::MAX;
    }
    // Values by whose bytes they lie in. After an update nobody reads the old ones any more, so each is
    // looked at once.
    let mut roots: Vec<ValueId> = (0..graph.value_count()).map(ValueId::new).collect();
    let mut sharing: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    for id in &graph.inputs {
        sharing.insert(*id, vec![*id]);
    }
    let mut copies: HashMap<ValueId, ValueId> = HashMap::new();
    let nodes = std::mem::take(&mut graph.nodes);
    for (at, mut node) in nodes.into_iter().enumerate() {
        let targets = node.updates();
        for (input, _) in &targets {
            let own = node.inputs[*input];
            for old in std::mem::take(sharing.entry(roots[own.index()]).or_default()) {
                // Its own target an update reads as it writes it; through a view it must not.
                let crossed = old != own && node.inputs.contains(&old);
                if last_read[old.index()] > at || crossed {
                    let copy = copy_of(&mut graph, old, Kind::Activation, &node);
                    roots.push(copy);
                    copies.insert(old, copy);
                }
            }
        }
        for (i, id) in node.inputs.iter_mut().enumerate() {
            let is_target = targets.iter().any(|(input, _)| *input == i);
            if let (Some(copy), false) = (copies.get(id), is_target) {
                *id = *copy;
            }
        }
        for (input, output) in shares(&node) {
            roots[node.outputs[output].index()] = roots[node.inputs[input].index()];
        }
        for id in &node.outputs {
            sharing.entry(roots[id.index()]).or_default().push(*id);
        }
        graph.nodes.push(node);
    }
    for id in &mut graph.outputs {
        if let Some(copy) = copies.get(id) {
            *id = *copy;
        }
    }
    checked(graph)
}

/// For each value, the one whose bytes it lies in, through views and updates.
pub(crate) fn roots(values: usize, nodes: &[Node]) -> Vec<ValueId> {
    let mut roots: Vec<ValueId> = (0..values).map(ValueId::new).collect();
    for node in nodes {
        for (input, output) in shares(node) {
            roots[node.outputs[output].index()] = roots[node.inputs[input].index()];
        }
    }
    roots
}

/// Inputs in whose bytes a result lies, with that result.
pub(crate) fn shares(node: &Node) -> SmallVec<[(usize, usize); 1]> {
    match node.op.mem {
        Mem::View(input) => SmallVec::from_iter([(input, 0)]),
        _ => node.updates(),
    }
}

/// Adds a copy of a value, of that kind, before a node: one that updates its bytes, or that alone reads the copy.
pub(crate) fn copy_of(graph: &mut Graph, old: ValueId, kind: Kind, before: &Node) -> ValueId {
    let info: ValueInfo = graph.value(old).clone();
    let copy = graph.add_value(ValueInfo { kind, ..info });
    graph.nodes.push(Node {
        op: &IDENTITY,
        attrs: Attrs::None,
        inputs: vec![old],
        outputs: vec![copy],
        aux: false,
        regions: Vec::new(),
        source: before.source,
    });
    copy
}
