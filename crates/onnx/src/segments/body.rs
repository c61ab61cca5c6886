//! The trace of a segment: its nodes, one after the other, up to the first that needs what is not known.

use std::collections::HashSet;
use std::sync::Arc;

use tonnage::{Result, Tensor};

use super::{Ending, Names};
use crate::contents::ModelData;
use crate::import::{Importer, Need, Scope};
use crate::message::{AttributeMessage, AttributeValue};
use crate::rules::is_random;
use crate::value::Value;
use crate::weights::Weights;

/// What is traced.
pub(super) struct Body {
    pub data: Arc<ModelData>,
    pub weights: Arc<Weights>,
    pub start: usize,
    pub names: Names,
    pub fixed: Vec<(String, Value)>,
    /// Arguments whose numbers it may be made for, where they decide a value.
    pub small: Vec<String>,
}

impl Body {
    pub fn run(&self, given: Vec<Tensor>) -> Result<(Vec<Tensor>, Ending)> {
        let importer = Importer::new(&self.data, &self.weights);
        let message = &self.data.message;
        let scope = Scope::new(None);
        let mut given = given.into_iter();
        for (name, count) in &self.names {
            let value = match count {
                None => given.next().map_or(Value::Absent, Value::Tensor),
                Some(n) => Value::Sequence(given.by_ref().take(*n).collect()),
            };
            scope.set(name, value);
        }
        self.fixed.iter().for_each(|(name, value)| scope.set(name, value.clone()));
        let mut next = message.graph.nodes.len();
        for (at, node) in message.graph.nodes.iter().enumerate().skip(self.start) {
            let ran = importer.node((at, node), &scope, &message.opsets, &Vec::new());
            match (ran, importer.take_need()) {
                (Ok(()), _) => self.data.imported(at + 1),
                (Err(_), Some(need)) => {
                    let Some(name) = self.argument(&need, at) else {
                        next = at;
                        break;
                    };
                    let ending = Ending { next: at, needs: Some(name), ..Ending::default() };
                    return Ok((Vec::new(), ending));
                }
                (Err(error), None) => return Err(error),
            }
            // Sizes that the data decide are numbers for what comes behind.
            let open = |name: &String| scope.get(name).is_some_and(|value| is_open(&value));
            if node.outputs.iter().any(open) {
                next = at + 1;
                break;
            }
        }
        let (mut results, mut ending) = (Vec::new(), Ending { next, ..Ending::default() });
        let mut values: Vec<(String, Value)> = scope.into_values().into_iter().collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        values.retain(|(name, _)| self.data.is_live(name, next));
        for (name, value) in values {
            let is_argument = self.names.iter().any(|(own, _)| *own == name);
            if is_argument {
                continue;
            }
            let value = self.weights.settled(value)?;
            if value.is_known() {
                ending.constants.push((name, value));
                continue;
            }
            let count = matches!(value, Value::Sequence(_)).then_some(value.tensors().len());
            results.extend(value.tensors().iter().cloned());
            ending.types.extend(value.tensors().iter().map(Tensor::ty));
            ending.results.push((name, count));
        }
        Ok((results, ending))
    }

    /// The argument whose numbers would do for what the node at a place needs: it is one, or made of small ones alone.
    fn argument(&self, need: &Need, at: usize) -> Option<String> {
        let Need::Numbers(name) = need else { return None };
        if self.names.iter().any(|(own, _)| own == name) && !self.is_fixed(name) {
            return Some(name.clone());
        }
        let nodes = &self.data.message.graph.nodes[self.start..at];
        let (mut open, mut found) = (vec![name], None);
        let mut seen: HashSet<&String> = HashSet::new();
        while let Some(name) = open.pop() {
            let is_known = name.is_empty() || self.is_fixed(name);
            if !seen.insert(name) || is_known || matches!(self.data.weight(name), Ok(Some(_))) {
                continue;
            }
            if self.small.contains(name) {
                found = Some(name.clone());
                continue;
            }
            let node = nodes.iter().rev().find(|node| node.outputs.contains(name))?;
            if is_random(&node.op) || node.attributes.iter().any(is_graph) {
                return None;
            }
            open.extend(&node.inputs);
        }
        found
    }

    fn is_fixed(&self, name: &str) -> bool {
        self.fixed.iter().any(|(fixed, _)| fixed == name)
    }
}

fn is_graph(attribute: &AttributeMessage) -> bool {
    matches!(attribute.value, AttributeValue::Graph(_))
}

fn is_open(value: &Value) -> bool {
    value.tensors().iter().any(|tensor| tensor.shape().sizes().is_none())
}
