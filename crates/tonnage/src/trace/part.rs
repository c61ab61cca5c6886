//! A part of a trace that goes on: what some of its values need, and where its inputs come from.
//!
//! Decision: `docs/decisions/deferred-updates-in-python.md`.

use tonnage_core::Value;
use tonnage_core::graph::{Subgraph, ValueId};

use super::Trace;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Where an input of a trace comes from.
pub(crate) enum InputOrigin {
    /// It is the argument of that number.
    Argument(usize),
    /// It was captured.
    Captured(Tensor),
    /// It is a variable's value.
    Variable(Variable),
}

impl Trace {
    /// The part of the graph so far that computes these values, and where each of its inputs comes from. What nodes of it
    /// wait for is part of it, as further outputs.
    pub fn part(&self, outputs: &[ValueId]) -> (Subgraph, Vec<InputOrigin>) {
        let state = self.state();
        let graph = state.builder.graph();
        let mut outputs = outputs.to_vec();
        if !state.waiting.is_empty() {
            let mut needed = vec![false; graph.value_count()];
            outputs.iter().for_each(|id| needed[id.index()] = true);
            // What a node waits for comes before it, so once backwards sees all of it.
            for node in graph.nodes.iter().rev() {
                if !node.outputs.iter().any(|id| needed[id.index()]) {
                    continue;
                }
                let waits_for = node.outputs.first().and_then(|id| state.waiting.get(id));
                for id in waits_for.into_iter().flatten() {
                    outputs.push(*id);
                    needed[id.index()] = true;
                }
                node.inputs.iter().for_each(|id| needed[id.index()] = true);
            }
        }
        let part = graph.part(&outputs);
        let is = |value: &Value, id: ValueId| value.id() == Some(id);
        let origins = part
            .inputs
            .iter()
            .filter_map(|id| {
                if let Some(at) = state.arguments.iter().position(|value| is(value, *id)) {
                    return Some(InputOrigin::Argument(at));
                }
                if let Some((tensor, _)) = state.captured.iter().find(|(_, value)| is(value, *id)) {
                    return Some(InputOrigin::Captured(tensor.clone()));
                }
                let used = state.variables.iter().find(|used| is(&used.input, *id))?;
                Some(InputOrigin::Variable(used.variable.clone()))
            })
            .collect();
        (part, origins)
    }
}
