//! Branches and loops without what nobody needs: results that nobody reads, carried values that only keep
//! themselves alive, inputs that no region looks at.
//!
//! The invariant: what is left computes the same for everyone who still reads it. Other ops with regions
//! (the gradient of a loop, which is called with what its loop was) are left as they are.

use std::sync::Arc;

use super::{Graph, Node, ValueId};
use crate::attrs::Attrs;
use crate::row::{Lower, Region};

/// Shrinks a node with regions; `live` are values that somebody reads later.
pub(super) fn shrink(node: &mut Node, live: &[bool]) {
    match (node.op.lower, &node.attrs) {
        (Lower::Region(Region::Branch), _) => branch(node, live),
        (Lower::Region(Region::Loop), Attrs::Loop { carried, .. }) => {
            let carried = *carried;
            repeat(node, carried, live);
        }
        _ => {}
    }
}

/// The first input decides; each branch takes the others.
fn branch(node: &mut Node, live: &[bool]) {
    let needed: Vec<bool> = node.outputs.iter().map(|id| live[id.index()]).collect();
    let mut graphs: Vec<Graph> = node.regions.iter().map(|g| (**g).clone()).collect();
    for graph in &mut graphs {
        keep(&mut graph.outputs, &needed);
        graph.prune();
    }
    let given = node.inputs.len() - 1;
    let read = read_by_any(&graphs, given);
    if needed.iter().chain(&read).all(|yes| *yes) {
        return;
    }
    keep(&mut node.outputs, &needed);
    let mut inputs = vec![true];
    inputs.extend(&read);
    keep(&mut node.inputs, &inputs);
    for graph in &mut graphs {
        keep(&mut graph.inputs, &read);
    }
    node.regions = graphs.into_iter().map(Arc::new).collect();
}

/// Condition and body take the carried values and what they only read; the body returns the carried ones.
fn repeat(node: &mut Node, carried: usize, live: &[bool]) {
    let [condition, body] = node.regions.as_slice() else { return };
    let asked = condition.read_values();
    let mut needed: Vec<bool> = (0..carried)
        .map(|i| live[node.outputs[i].index()] || asked[condition.inputs[i].index()])
        .collect();
    // What a needed value is made of in the body is needed in the next round.
    loop {
        let made = reaches(body, &needed);
        let more: Vec<bool> =
            (0..carried).map(|i| needed[i] || made[body.inputs[i].index()]).collect();
        if more == needed {
            break;
        }
        needed = more;
    }
    let mut graphs = [(**condition).clone(), (**body).clone()];
    keep(&mut graphs[1].outputs, &needed);
    for graph in &mut graphs {
        graph.prune();
    }
    let mut read = read_by_any(&graphs, node.inputs.len());
    read[..carried].copy_from_slice(&needed);
    if read.iter().all(|yes| *yes) {
        return;
    }
    keep(&mut node.outputs, &needed);
    keep(&mut node.inputs, &read);
    for graph in &mut graphs {
        keep(&mut graph.inputs, &read);
    }
    if let Attrs::Loop { carried, .. } = &mut node.attrs {
        *carried = needed.iter().filter(|yes| **yes).count();
    }
    node.regions = graphs.into_iter().map(Arc::new).collect();
}

/// Values that the needed outputs, or an effect, are made of.
fn reaches(graph: &Graph, needed: &[bool]) -> Vec<bool> {
    let mut live = vec![false; graph.value_count()];
    for (id, needed) in graph.outputs.iter().zip(needed) {
        live[id.index()] |= *needed;
    }
    for node in graph.nodes.iter().rev() {
        if node.has_effect() || node.outputs.iter().any(|id| live[id.index()]) {
            for id in &node.inputs {
                live[id.index()] = true;
            }
        }
    }
    live
}

fn read_by_any(graphs: &[Graph], inputs: usize) -> Vec<bool> {
    let mut read = vec![false; inputs];
    for graph in graphs {
        let values = graph.read_values();
        for (read, id) in read.iter_mut().zip(&graph.inputs) {
            *read |= values[id.index()];
        }
    }
    read
}

fn keep(ids: &mut Vec<ValueId>, which: &[bool]) {
    let mut which = which.iter();
    ids.retain(|_| which.next() != Some(&false));
}
