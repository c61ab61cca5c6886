//! Values numbered in the order in which they are made, and those that are gone left out: graphs that are
//! the same read the same.

use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};

/// The graph with its values numbered anew.
pub(crate) fn numbered(graph: Graph) -> Result<Graph> {
    let mut made = Graph::default();
    let mut map: Vec<ValueId> = vec![ValueId::new(0); graph.value_count()];
    for id in &graph.inputs {
        map[id.index()] = made.add_value(graph.value(*id).clone());
        made.inputs.push(map[id.index()]);
    }
    made.nodes.reserve(graph.nodes.len());
    for node in &graph.nodes {
        for id in &node.outputs {
            map[id.index()] = made.add_value(graph.value(*id).clone());
        }
    }
    let renamed = |ids: &[ValueId]| ids.iter().map(|id| map[id.index()]).collect::<Vec<_>>();
    made.outputs = renamed(&graph.outputs);
    for node in graph.nodes {
        let (inputs, outputs) = (renamed(&node.inputs), renamed(&node.outputs));
        made.nodes.push(Node { inputs, outputs, ..node });
    }
    super::checked(made)
}
