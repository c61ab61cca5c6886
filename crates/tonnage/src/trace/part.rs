//! A part of a trace that goes on: what some of its values need, and where its inputs come from.

use tonnage_core::Value;
use tonnage_core::graph::{Part, ValueId};

use super::Trace;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Where an input of a trace comes from.
pub(crate) enum Origin {
    /// It is the argument of that number.
    Argument(usize),
    /// It was captured.
    Captured(Tensor),
    /// It is a variable's value.
    Variable(Variable),
}

impl Trace {
    /// The part of the graph so far that computes these values, and where each of its inputs comes from.
    pub fn part(&self, outputs: &[ValueId]) -> (Part, Vec<Origin>) {
        let state = self.state();
        let part = state.builder.graph().part(outputs);
        let is = |value: &Value, id: ValueId| value.id() == Some(id);
        let origins = part
            .inputs
            .iter()
            .filter_map(|id| {
                if let Some(at) = state.arguments.iter().position(|value| is(value, *id)) {
                    return Some(Origin::Argument(at));
                }
                if let Some((tensor, _)) = state.captured.iter().find(|(_, value)| is(value, *id)) {
                    return Some(Origin::Captured(tensor.clone()));
                }
                let used = state.variables.iter().find(|used| is(&used.input, *id))?;
                Some(Origin::Variable(used.variable.clone()))
            })
            .collect();
        (part, origins)
    }
}
