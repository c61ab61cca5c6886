//! A part of a graph: what some of its values need, and nothing else.

use super::{Graph, Node, ValueId};

/// A part of a graph, with numbers of its own.
#[derive(Debug, Clone)]
pub struct Subgraph {
    /// The part; its inputs are those that it needs, in their order.
    pub graph: Graph,
    /// What its inputs are called in the whole.
    pub inputs: Vec<ValueId>,
}

impl Graph {
    /// The part that computes these values. Nodes with an effect are in it where one of the values
    /// depends on them; and those without results, which nothing can depend on, where all that they look at is
    /// computed anyway.
    #[must_use]
    pub fn part(&self, outputs: &[ValueId]) -> Subgraph {
        let mut needed = vec![false; self.value_count()];
        for id in outputs {
            needed[id.index()] = true;
        }
        let deciders = self.size_deciders();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if node.outputs.iter().any(|id| needed[id.index()]) {
                let by = deciders.get(at).into_iter().flatten();
                let by = by.flat_map(|by| &self.nodes[*by].outputs);
                for id in node.inputs.iter().chain(&node.outputs).chain(by) {
                    needed[id.index()] = true;
                }
            }
        }
        let is_needed = |node: &&Node| match node.outputs.as_slice() {
            [] => !node.inputs.is_empty() && node.inputs.iter().all(|id| needed[id.index()]),
            outputs => outputs.iter().any(|id| needed[id.index()]),
        };
        let nodes: Vec<&Node> = self.nodes.iter().filter(is_needed).collect();
        let mut graph = Graph::default();
        let mut names: Vec<Option<ValueId>> = vec![None; self.value_count()];
        let mut name = |graph: &mut Graph, id: ValueId| {
            *names[id.index()].get_or_insert_with(|| graph.add_value(self.value(id).clone()))
        };
        let inputs: Vec<ValueId> =
            self.inputs.iter().copied().filter(|id| needed[id.index()]).collect();
        graph.inputs = inputs.iter().map(|id| name(&mut graph, *id)).collect();
        for node in nodes {
            let mut copy = node.clone();
            for id in copy.inputs.iter_mut().chain(&mut copy.outputs) {
                *id = name(&mut graph, *id);
            }
            graph.nodes.push(copy);
        }
        graph.outputs = outputs.iter().map(|id| name(&mut graph, *id)).collect();
        Subgraph { graph, inputs }
    }
}
