//! Branches and loops without what is not needed: results without readers, carried values that only keep
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
    match node.op.lower {
        Lower::Region(Region::Branch) => branch(node, live),
        Lower::Region(Region::Loop) => repeat(node, live),
        _ => {}
    }
}

/// The first input decides; each branch takes the others.
fn branch(node: &mut Node, live: &[bool]) {
    if !node.updates().is_empty() {
        return;
    }
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

/// Condition and body take the carried values and what they only read, the body rows too; the body returns the
/// carried values and rows. One that hands checkpoints over keeps them all: its gradient takes them as they are.
fn repeat(node: &mut Node, live: &[bool]) {
    let Attrs::Loop(spec) = &node.attrs else { return };
    let Some((condition, body)) = spec.regions(&node.regions) else { return };
    if node.aux || !spec.updates.is_empty() {
        return;
    }
    let carried = spec.carried;
    let asked = condition.map(|graph| graph.read_values());
    let is_asked = |i: usize| match (&asked, condition) {
        (Some(asked), Some(graph)) => asked[graph.inputs[i].index()],
        _ => false,
    };
    let mut needed: Vec<bool> = node.outputs.iter().map(|id| live[id.index()]).collect();
    (0..carried).for_each(|i| needed[i] |= is_asked(i));
    // What a needed value is made of in the body is needed in the next iteration.
    loop {
        let made = reaches(body, &needed);
        let more = |i: &usize| !needed[*i] && made[body.inputs[*i].index()];
        let more: Vec<usize> = (0..carried).filter(more).collect();
        if more.is_empty() {
            break;
        }
        more.into_iter().for_each(|i| needed[i] = true);
    }
    let mut test = condition.map(|graph| (**graph).clone());
    let mut iteration = (**body).clone();
    keep(&mut iteration.outputs, &needed);
    test.iter_mut().for_each(Graph::prune);
    iteration.prune();
    // The condition takes no rows, and there are none where it is.
    let mut read = read_by_any(std::slice::from_ref(&iteration), node.inputs.len());
    for (read, asked) in read.iter_mut().zip(read_by_any(test.as_slice(), node.inputs.len())) {
        *read |= asked;
    }
    read[..carried].copy_from_slice(&needed[..carried]);
    if read.iter().chain(&needed).all(|yes| *yes) {
        return;
    }
    keep(&mut node.outputs, &needed);
    keep(&mut node.inputs, &read);
    for graph in test.iter_mut().chain([&mut iteration]) {
        keep(&mut graph.inputs, &read);
    }
    let count = |flags: &[bool]| flags.iter().filter(|yes| **yes).count();
    let sliced = count(&read[spec.sliced_inputs()]);
    let (states, stacked) = (count(&needed[..carried]), count(&needed[carried..]));
    let spec = Loop { carried: states, sliced, stacked, ..(**spec).clone() };
    node.attrs = Attrs::Loop(Box::new(spec));
    node.regions = test.into_iter().chain([iteration]).map(Arc::new).collect();
}

/// Values that the needed outputs, or an effect, are made of.
fn reaches(graph: &Graph, needed: &[bool]) -> Vec<bool> {
    let mut live = vec![false; graph.value_count()];
    for (id, needed) in graph.outputs.iter().zip(needed) {
        live[id.index()] |= *needed;
    }
    let deciders = graph.size_deciders();
    for (at, node) in graph.nodes.iter().enumerate().rev() {
        if node.has_effect() || node.outputs.iter().any(|id| live[id.index()]) {
            let by = deciders.get(at).into_iter().flatten();
            for id in node.inputs.iter().chain(by.flat_map(|by| &graph.nodes[*by].outputs)) {
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
