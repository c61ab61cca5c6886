//! How many states the gradients of loops checkpoint, as something that can be asked and changed: fewer states take
//! less memory and recompute more iterations.
//!
//! The invariant: a loop and every gradient that it hands states to say the same number.

use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_ops::math::identity::IDENTITY;

use crate::schedule::revolve;

/// The gradient of a loop, as far as its states go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopCheckpoints {
    /// The node of the backward pass.
    pub node: usize,
    /// How many iterations the loop has; `None` where only the data know.
    pub iterations: Option<u64>,
    /// States that are checkpointed at once, the first one included.
    pub max_checkpoints: u64,
    /// What one takes.
    pub state: Bytes,
}

impl LoopCheckpoints {
    /// Iterations that would be recomputed with that number of checkpoints; `None` where only the data know.
    pub fn recomputed_iterations(&self, max_checkpoints: u64) -> Option<u64> {
        self.iterations.map(|iterations| revolve::recomputed(iterations, max_checkpoints))
    }
}

/// The gradients of loops in a graph of known sizes that checkpoint states in memory, regions not included.
pub fn loop_checkpoints(graph: &Graph) -> Vec<LoopCheckpoints> {
    let of = |(node, n): (usize, &Node)| {
        let Attrs::LoopGrad(spec) = &n.attrs else { return None };
        if spec.of.spills {
            return None;
        }
        let iterations = spec.of.known_iterations();
        let carried = n.inputs[..spec.of.carried].iter();
        let state = carried.map(|id| graph.ty(*id).bytes(n.op.name).ok()).sum::<Option<Bytes>>()?;
        Some(LoopCheckpoints {
            node,
            iterations,
            max_checkpoints: spec.of.max_checkpoints(iterations),
            state,
        })
    };
    graph.nodes.iter().enumerate().filter_map(of).collect()
}

/// The graph with another number of checkpoints, at least 1, for the gradient of a loop; and for the loop, and every other
/// gradient that it hands states to.
///
/// # Errors
/// Where that node is not the gradient of a loop.
pub fn with_max_checkpoints(
    graph: &Arc<Graph>,
    node: usize,
    max_checkpoints: usize,
) -> Result<Arc<Graph>> {
    let mut made = (**graph).clone();
    let Some((handed, checkpoints)) = made.nodes.get(node).and_then(handed) else {
        let what = format!("node {node} is not the gradient of a loop");
        return Err(ErrorKind::BadGraph { what }.into());
    };
    let made_by = |ids: &[ValueId]| ids.first().map(|id| origin(graph, *id));
    let first = made_by(&checkpoints);
    let is_loop = |n: &Node| n.aux && first.is_some_and(|id| n.outputs.contains(&id));
    let takes = |n: &Node| handed && self::handed(n).is_some_and(|(_, c)| made_by(&c) == first);
    for at in 0..made.nodes.len() {
        let n = &made.nodes[at];
        if at == node || is_loop(n) || takes(n) {
            set(&mut made, at, max_checkpoints.max(1));
        }
        // What goes on as it is.
        if made.nodes[at].op == &IDENTITY {
            let (from, to) = (made.nodes[at].inputs[0], made.nodes[at].outputs[0]);
            made.value_mut(to).ty = made.ty(from).clone();
        }
    }
    Ok(Arc::new(made))
}

/// The value that another is, handed on as it is.
pub(crate) fn origin(graph: &Graph, mut id: ValueId) -> ValueId {
    let before = |id| graph.nodes.iter().find(|n| n.op == &IDENTITY && n.outputs.contains(&id));
    while let Some(node) = before(id) {
        id = node.inputs[0];
    }
    id
}

/// Whether a gradient of a loop is handed states, and which values they are.
fn handed(node: &Node) -> Option<(bool, Vec<ValueId>)> {
    let Attrs::LoopGrad(spec) = &node.attrs else { return None };
    let at = spec.inputs(node.inputs.len())?;
    Some((spec.handed, node.inputs[at.checkpoints].to_vec()))
}

fn set(graph: &mut Graph, at: usize, max_checkpoints: usize) {
    let node = &mut graph.nodes[at];
    let (spec, checkpoints) = match &mut node.attrs {
        Attrs::Loop(spec) => {
            let first = spec.carried + spec.stacked;
            let ids = node.outputs.get(first..first + spec.carried).unwrap_or_default().to_vec();
            spec.max_checkpoints = Some(max_checkpoints);
            ((**spec).clone(), ids)
        }
        Attrs::LoopGrad(spec) => {
            spec.of.max_checkpoints = Some(max_checkpoints);
            return;
        }
        _ => return,
    };
    let carried: Vec<ValueId> = node.inputs[..spec.carried].to_vec();
    for (id, carried) in checkpoints.into_iter().zip(carried) {
        let ty = spec.checkpoint(graph.ty(carried));
        graph.value_mut(id).ty = ty;
    }
}
