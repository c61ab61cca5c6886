//! Tracing of bodies and branches: each is traced on its own, and takes what it uses from outside as inputs.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;
use tonnage_core::recipe::Key;
use tonnage_core::{Kind, Result, Source, TensorType};

use crate::random::next_key;
use crate::tensor::{Tensor, TensorRepr};
use crate::trace::{FinishedTrace, Trace};
use crate::tree::Tree;
use crate::variable::Variable;

/// A region that is being traced.
pub(super) struct RegionTrace<R> {
    pub trace: Trace,
    pub result: R,
}

/// Traces a region that takes values of these types.
pub(super) fn begin<R>(
    types: &[TensorType],
    source: Source,
    f: impl FnOnce(Vec<Tensor>) -> Result<R>,
) -> Result<RegionTrace<R>> {
    let trace = Trace::begin_region(source);
    let arguments = types.iter().map(|ty| trace.argument(ty.clone())).collect();
    let result = trace.within(|| f(arguments))?;
    Ok(RegionTrace { trace, result })
}

impl<R> RegionTrace<R> {
    /// The line that made a value of the region.
    pub fn line(&self, tensor: &Tensor) -> Option<Source> {
        let TensorRepr::Symbolic(symbol) = tensor.repr() else { return None };
        let id = symbol.value.id().filter(|_| symbol.trace.number() == self.trace.number())?;
        Some(self.trace.state().builder.graph().value(id).source)
    }
}

/// The tensors of something nested, in order.
pub(super) fn leaves<R: Tree>(tree: &R) -> Vec<Tensor> {
    let mut all = Vec::new();
    tree.for_each(&mut |tensor| all.push(tensor.clone()));
    all
}

/// How something is nested, and its plain values.
pub(super) fn text<R: Tree>(tree: &R) -> String {
    let mut text = String::new();
    tree.describe(&mut text);
    text
}

/// The same with other tensors, in order.
pub(super) fn with_leaves<R: Tree>(
    tree: R,
    tensors: &mut impl Iterator<Item = Tensor>,
) -> Result<R> {
    tree.map(&mut |tensor| Ok(tensors.next().unwrap_or(tensor)))
}

/// Variables that a region writes, in the order of their first use, behind those that are listed already.
pub(super) fn add_written(all: &mut Vec<Variable>, trace: &Trace) {
    for used in trace.state().variables.iter().filter(|u| u.written) {
        add(all, &used.variable);
    }
}

fn add(all: &mut Vec<Variable>, variable: &Variable) {
    if !all.iter().any(|v| v.same(variable)) {
        all.push(variable.clone());
    }
}

/// What regions use from outside, each once.
#[derive(Default)]
pub(super) struct RegionCaptures {
    pub captured: Vec<Tensor>,
    pub variables: Vec<Variable>,
}

impl RegionCaptures {
    /// What these regions use, without variables that are listed apart.
    pub fn of(parts: &[&FinishedTrace], apart: &[Variable]) -> RegionCaptures {
        let mut all = RegionCaptures::default();
        for part in parts {
            for tensor in &part.captured {
                if !all.captured.iter().any(|t| t.id() == tensor.id()) {
                    all.captured.push(tensor.clone());
                }
            }
            for used in &part.variables {
                if !apart.iter().any(|v| v.same(&used.variable)) {
                    add(&mut all.variables, &used.variable);
                }
            }
        }
        all
    }
}

/// An input that several regions take in the same place.
pub(super) enum Takes<'a> {
    /// The region's own argument of that number.
    Argument(usize),
    Tensor(&'a Tensor),
    Variable(&'a Variable),
}

/// A region's graph with inputs in that order; what it does not use it takes all the same.
pub(super) fn arranged(part: &FinishedTrace, arguments: usize, order: &[Takes]) -> Arc<Graph> {
    let mut graph = part.graph.clone();
    let own = graph.inputs.clone();
    let inputs = order
        .iter()
        .map(|takes| match takes {
            Takes::Argument(i) => own[*i],
            Takes::Tensor(tensor) => {
                let at = part.captured.iter().position(|t| t.id() == tensor.id());
                match at {
                    Some(at) => own[arguments + at],
                    None => graph.add_unused_input(tensor.ty(), Kind::Constant),
                }
            }
            Takes::Variable(variable) => {
                let at = part.variables.iter().position(|u| u.variable.same(variable));
                match at {
                    Some(at) => own[arguments + part.captured.len() + at],
                    None => graph.add_unused_input(variable.ty(), variable.kind()),
                }
            }
        })
        .collect();
    graph.inputs = inputs;
    Arc::new(graph)
}

/// What random ops in these regions are made of: of the call in a function, fixed now otherwise. Where none
/// is drawn there is no key of its own, so that two loops that say the same are the same.
pub(super) fn key(regions: &[Arc<Graph>]) -> Key {
    match regions.iter().any(|g| draws(g)) {
        true => next_key(),
        false => Key::Fixed([0; 2]),
    }
}

fn draws(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| {
        matches!(node.attrs, Attrs::Random { key: Key::PerCall(_), .. })
            || node.regions.iter().any(|g| draws(g))
    })
}
