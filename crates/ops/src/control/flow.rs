//! Which values a gradient flows through: in a loop a value matters because of what a later iteration makes
//! of it, so the answer is a fixed point.

use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::looping::Loop;

/// What the gradient of a loop has to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Flow {
    /// Carried values that have a gradient: they depend on something wanted, and a result depends on
    /// them.
    pub carried: Vec<bool>,
    /// Stacked outputs whose gradient matters.
    pub stacked: Vec<bool>,
    /// Inputs that are not carried and whose gradient is wanted and not zero, sliced ones first.
    pub fixed: Vec<bool>,
}

/// Looks through a body. `needs` says of every input of the loop whether its gradient is wanted, `seeded`
/// of every output whether it has one.
pub fn of(body: &Graph, spec: &Loop, needs: &[bool], seeded: &[bool]) -> Flow {
    let carried = spec.carried;
    let mut depends = needs.to_vec();
    let made = loop {
        let made = forward(body, &depends);
        let grown = (0..carried).filter(|j| made[*j] && !depends[*j]).collect::<Vec<_>>();
        if grown.is_empty() {
            break made;
        }
        grown.into_iter().for_each(|j| depends[j] = true);
    };
    let mut matters: Vec<bool> = seeded.to_vec();
    let taken = loop {
        let taken = backward(body, &matters);
        let grown = (0..carried).filter(|j| taken[*j] && !matters[*j]).collect::<Vec<_>>();
        if grown.is_empty() {
            break taken;
        }
        grown.into_iter().for_each(|j| matters[j] = true);
    };
    Flow {
        carried: (0..carried).map(|j| depends[j] && matters[j]).collect(),
        stacked: (carried..seeded.len()).map(|k| seeded[k] && made[k]).collect(),
        fixed: (carried..needs.len()).map(|i| needs[i] && taken[i]).collect(),
    }
}

fn is_float(graph: &Graph, id: ValueId) -> bool {
    graph.ty(id).dtype.is_float()
}

/// Which outputs depend on these inputs.
fn forward(graph: &Graph, inputs: &[bool]) -> Vec<bool> {
    let mut reached = vec![false; graph.value_count()];
    for (id, yes) in graph.inputs.iter().zip(inputs) {
        reached[id.index()] = *yes && is_float(graph, *id);
    }
    for node in &graph.nodes {
        if node.inputs.iter().any(|id| reached[id.index()]) {
            for id in &node.outputs {
                reached[id.index()] = is_float(graph, *id);
            }
        }
    }
    graph.outputs.iter().map(|id| reached[id.index()]).collect()
}

/// Which inputs these outputs depend on.
fn backward(graph: &Graph, outputs: &[bool]) -> Vec<bool> {
    let mut reached = vec![false; graph.value_count()];
    for (id, yes) in graph.outputs.iter().zip(outputs) {
        reached[id.index()] |= *yes && is_float(graph, *id);
    }
    for node in graph.nodes.iter().rev() {
        if node.outputs.iter().any(|id| reached[id.index()]) {
            for id in &node.inputs {
                reached[id.index()] |= is_float(graph, *id);
            }
        }
    }
    graph.inputs.iter().map(|id| reached[id.index()]).collect()
}
