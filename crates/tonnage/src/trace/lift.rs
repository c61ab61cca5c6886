//! What a trace computes without its arguments, taken out of it: the first value of a variable that is made
//! while a function is traced.
//!
//! Decision: `docs/decisions/lifted-initial-values.md`.

use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::graph::{Builder, ValueId, replay};
use tonnage_core::{Emit, Kind, Value};

use super::{InputOrigin, Trace};
use crate::function::program::TracedProgram;
use crate::function::signature::Signature;
use crate::tensor::{Tensor, TensorRepr, TracedValue};
use crate::variable::Variable;

/// A program without arguments that computes a symbolic tensor.
///
/// # Errors
/// Where it depends on an argument, or on something that has an effect.
pub(crate) fn lift(tensor: &Tensor) -> Result<TracedProgram> {
    let TensorRepr::Symbolic(symbol) = tensor.repr() else {
        return Err(ErrorKind::Symbolic { what: "a variable's first value" }.into());
    };
    let mut lifting = Lifting::default();
    let value = lifting.symbol(symbol)?;
    let mut graph = lifting.builder.finish(&[value])?;
    let ids = |inputs: &[Value]| inputs.iter().filter_map(Value::id).collect::<Vec<_>>();
    graph.inputs = ids(&lifting.captures);
    graph.inputs.extend(ids(&lifting.reads));
    let variables = lifting.variables.into_iter().map(|variable| (variable, false)).collect();
    let signature = Signature::new(String::new(), Vec::new(), Vec::new());
    TracedProgram::new(graph, signature, lifting.captured, variables, 1)
}

#[derive(Default)]
struct Lifting {
    builder: Builder,
    captured: Vec<Tensor>,
    captures: Vec<Value>,
    variables: Vec<Variable>,
    reads: Vec<Value>,
}

impl Lifting {
    fn symbol(&mut self, symbol: &TracedValue) -> Result<Value> {
        let id =
            symbol.value.id().ok_or(ErrorKind::Symbolic { what: "a variable's first value" })?;
        self.value(&symbol.trace, id)
    }

    /// Computes a value of a trace in the builder; what it uses of a trace around that, too.
    fn value(&mut self, trace: &Trace, id: ValueId) -> Result<Value> {
        let (part, origins) = trace.part(&[id]);
        if let Some(node) = part.graph.nodes.iter().find(|node| node.has_effect()) {
            let what =
                format!("a first value that depends on `{}` at {}", node.op.name, node.source);
            let help = "compute it from what does not change, or make the variable outside of the function";
            return Err(bad_argument("variable", what, help));
        }
        let mut inputs = Vec::new();
        for (origin, id) in origins.into_iter().zip(&part.graph.inputs) {
            inputs.push(match origin {
                InputOrigin::Argument(_) => {
                    let what = "a first value that depends on an argument of the function";
                    let help = "make the variable outside of the function, or of something else";
                    return Err(bad_argument("variable", what, help));
                }
                InputOrigin::Captured(tensor) => match tensor.repr() {
                    TensorRepr::Symbolic(outer) => self.symbol(outer)?,
                    _ => {
                        let value = self.builder.input(tensor.ty(), Kind::Constant, None);
                        self.captured.push(tensor);
                        self.captures.push(value.clone());
                        value
                    }
                },
                InputOrigin::Variable(variable) => {
                    let name = part.graph.value(*id).name.clone();
                    let value = self.builder.input(variable.ty(), variable.kind(), name);
                    self.variables.push(variable);
                    self.reads.push(value.clone());
                    value
                }
            });
        }
        let made = replay(&part.graph, inputs, &mut self.builder as &mut dyn Emit)?;
        made.into_iter().next().ok_or_else(|| {
            ErrorKind::BadGraph { what: "a first value that is nowhere".into() }.into()
        })
    }
}
