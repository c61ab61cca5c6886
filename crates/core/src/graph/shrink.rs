//! Branches and loops without what nobody needs: results that nobody reads, carried values that only keep
//! themselves alive, inputs that no region looks at.
//!
//! The invariant: what is left computes the same for everyone who still reads it. Other ops with regions
//! (the gradient of a loop, which is called with what its loop was) are left as they are.

use std::sync::Arc;

use super::{Graph, Node, ValueId};
use crate::attrs::Attrs;
use crate::looping::Loop;
use crate::row::{Lower, Region};

/// Shrinks a node with regions; `live` are values that somebody reads later.
pub(super) fn shrink(node: &mut Node, live: &[bool]) {
    match (node.op.lower, &node.attrs) {
        (Lower::Region(Region::Branch), Attrs::Branch { updates, .. }) if updates.is_empty() => {
            branch(node, live);
        }
        // The gradient of a loop that hands its states over knows all of them.
        (Lower::Region(Region::Loop), Attrs::Loop(spec))
            if !node.aux && spec.updates.is_empty() =>
        {
            let spec = (**spec).clone();
            repeat(node, spec, live);
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

/// Condition and body take the carried values, rows, and what they only read; the body returns the carried ones
/// and rows.
fn repeat(node: &mut Node, mut spec: Loop, live: &[bool]) {
    let Some((condition, body)) = spec.regions(&node.regions) else { return };
    let asked = condition.map(|c| (c.read_values(), c));
    let is_asked = |i: usize| asked.as_ref().is_some_and(|(read, c)| read[c.inputs[i].index()]);
    let mut needed: Vec<bool> = node
        .outputs
        .iter()
        .enumerate()
        .map(|(i, id)| live[id.index()] || (i < spec.carried && is_asked(i)))
        .collect();
    // What a needed value is made of in the body is needed in the next round.
    loop {
        let made = reaches(body, &needed);
        let mut more = needed.clone();
        for (i, needed) in more[..spec.carried].iter_mut().enumerate() {
            *needed |= made[body.inputs[i].index()];
        }
        if more == needed {
            break;
        }
        needed = more;
    }
    let mut graphs: Vec<Graph> =
        condition.into_iter().chain([body]).map(|g| (**g).clone()).collect();
    if let Some(body) = graphs.last_mut() {
        keep(&mut body.outputs, &needed);
    }
    for graph in &mut graphs {
        graph.prune();
    }
    let mut read = read_by_any(&graphs, node.inputs.len());
    read[..spec.carried].copy_from_slice(&needed[..spec.carried]);
    if read.iter().chain(&needed).all(|yes| *yes) {
        return;
    }
    keep(&mut node.outputs, &needed);
    keep(&mut node.inputs, &read);
    for graph in &mut graphs {
        keep(&mut graph.inputs, &read);
    }
    let count = |which: &[bool]| which.iter().filter(|yes| **yes).count();
    spec.sliced = count(&read[spec.sliced_inputs()]);
    spec.stacked = count(&needed[spec.carried..]);
    spec.carried = count(&needed[..spec.carried]);
    node.attrs = Attrs::Loop(Box::new(spec));
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
