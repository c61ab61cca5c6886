//! A closure as a graph that is called: its arguments, what it captured, and the variables that it uses.

use std::sync::Arc;

use tonnage_core::graph::Graph;
use tonnage_core::{Result, Source};

use super::leaves;
use crate::tensor::Tensor;
use crate::trace::Trace;
use crate::tree::Tree;
use crate::variable::Variable;

/// A closure that was traced once, to be called.
pub(super) struct TracedClosure<R> {
    /// Its inputs: arguments, captured tensors, variables. Its outputs: results, values of the variables
    /// that it wrote.
    pub graph: Graph,
    /// What goes in besides the arguments.
    captured: Vec<Tensor>,
    variables: Vec<Variable>,
    written: Vec<Variable>,
    /// The result as it was traced.
    pub result: R,
}

/// Traces a closure. Variables are values in it: nothing is written before it is called.
pub(super) fn traced<A: Tree, R: Tree>(
    arguments: &A,
    source: Source,
    f: impl FnOnce(A) -> Result<R>,
) -> Result<TracedClosure<R>> {
    let trace = Trace::begin_call(source);
    let symbols = arguments.share().map(&mut |t| Ok(trace.argument(t.ty())))?;
    let result = trace.within(|| f(symbols))?;
    let mut outputs = leaves(&result);
    outputs.extend(trace.written());
    let traced = trace.finish(&outputs)?;
    let (mut variables, mut written) = (Vec::new(), Vec::new());
    for used in traced.variables {
        if used.written {
            written.push(used.variable.clone());
        }
        variables.push(used.variable);
    }
    Ok(TracedClosure { graph: traced.graph, captured: traced.captured, variables, written, result })
}

impl<R: Tree> TracedClosure<R> {
    /// What goes in: the arguments, then what it captured.
    pub fn inputs<A: Tree>(&self, arguments: A) -> Result<Vec<Tensor>> {
        let mut inputs = Vec::new();
        arguments.take(&mut |tensor| inputs.push(tensor));
        inputs.extend(self.captured.iter().cloned());
        for variable in &self.variables {
            inputs.push(variable.read()?);
        }
        Ok(inputs)
    }

    /// Results where they belong, and variables written.
    pub fn finish(self, mut made: Vec<Tensor>) -> Result<R> {
        self.write(made.split_off(made.len() - self.written()))?;
        let mut made = made.into_iter();
        self.result.map(&mut |traced| Ok(made.next().unwrap_or(traced)))
    }

    /// How many variables it writes; their values come last among what it makes.
    pub fn written(&self) -> usize {
        self.written.len()
    }

    /// Writes those variables.
    pub fn write(&self, values: Vec<Tensor>) -> Result<()> {
        for (variable, value) in self.written.iter().zip(values) {
            variable.assign(&value)?;
        }
        Ok(())
    }

    /// The graph, to be shared.
    pub fn graph(&self) -> Arc<Graph> {
        Arc::new(self.graph.clone())
    }
}
