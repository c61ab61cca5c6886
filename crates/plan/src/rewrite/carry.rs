//! Variables that a loop or a branch writes are its own to write: what assigns its result to the variable that it
//! started from becomes part of it, so that the variable is not carried in a second copy.
//!
//! Not where a body or branch can fail, or anything that runs before the assignment can: until then the variable must be
//! what it was, so that a call that fails leaves it so.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::{Lower, Region};
use tonnage_ops::state::assign::ASSIGN;

use super::{checked, roots};

/// The graph with such assignments gone.
pub(crate) fn carry(mut graph: Graph) -> Result<Graph> {
    let has_regions = |node: &Node| matches!(node.op.lower, Lower::Region(_));
    if !graph.nodes.iter().any(has_regions) {
        return Ok(graph);
    }
    let mut at = 0;
    while at < graph.nodes.len() {
        match found(&graph, at) {
            Some(found) => join(&mut graph, at, &found),
            None => at += 1,
        }
    }
    checked(graph)
}

/// A node whose result is assigned to the variable that it started from.
struct CarriedUpdate {
    node: usize,
    input: usize,
    output: usize,
}

fn found(graph: &Graph, at: usize) -> Option<CarriedUpdate> {
    let assign = graph.nodes.get(at).filter(|n| n.op == &ASSIGN)?;
    let (variable, value) = (assign.inputs[0], assign.inputs[1]);
    if graph.ty(variable) != graph.ty(value) {
        return None;
    }
    let node = graph.nodes[..at].iter().rposition(|n| n.outputs.contains(&value))?;
    let maker = &graph.nodes[node];
    let output = maker.outputs.iter().position(|id| *id == value)?;
    let input = match (maker.op.lower, &maker.attrs) {
        (Lower::Region(Region::Loop), Attrs::Loop(spec)) if output < spec.carried => output,
        (Lower::Region(Region::Branch), _) => {
            maker.inputs.iter().skip(1).position(|id| *id == variable)? + 1
        }
        _ => return None,
    };
    let fails = graph.nodes[node..at].iter().any(Node::can_fail);
    let found = CarriedUpdate { node, input, output };
    (maker.inputs[input] == variable && !fails && is_alone(graph, at, &found)).then_some(found)
}

/// Whether nobody else reads what the variable was from the node on, in any view.
fn is_alone(graph: &Graph, assign: usize, found: &CarriedUpdate) -> bool {
    let roots = roots(graph.value_count(), &graph.nodes);
    let root = |id: ValueId| roots[id.index()];
    let maker = &graph.nodes[found.node];
    let own = root(maker.inputs[found.input]);
    // After the assignment the same root is the new value.
    let before = |id: &ValueId| root(*id) == own && made_before(graph, *id, found.node);
    let others = maker.inputs.iter().enumerate().filter(|(i, _)| *i != found.input);
    let later = graph.nodes.iter().enumerate().skip(found.node + 1);
    !others.map(|(_, id)| id).any(before)
        && later.filter(|(at, _)| *at != assign).all(|(_, n)| !n.inputs.iter().any(before))
        && !graph.outputs.iter().any(before)
}

fn made_before(graph: &Graph, id: ValueId, node: usize) -> bool {
    !graph.nodes[node..].iter().any(|n| n.outputs.contains(&id))
}

/// The assignment's result is the node's own.
fn join(graph: &mut Graph, at: usize, found: &CarriedUpdate) {
    let assign = graph.nodes.remove(at);
    let (value, assigned) = (assign.inputs[1], assign.outputs[0]);
    for node in &mut graph.nodes[found.node + 1..] {
        node.inputs.iter_mut().filter(|id| **id == value).for_each(|id| *id = assigned);
    }
    graph.outputs.iter_mut().filter(|id| **id == value).for_each(|id| *id = assigned);
    let node = &mut graph.nodes[found.node];
    node.outputs[found.output] = assigned;
    match &mut node.attrs {
        Attrs::Loop(spec) => spec.updates.push(found.input),
        Attrs::Branch { updates, .. } => updates.push((found.input, found.output)),
        _ => {}
    }
}
