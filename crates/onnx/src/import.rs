//! Import is a trace: nodes call tensor methods, one after the other, inside of a function or eagerly.
//!
//! It is partial evaluation, too: a node whose inputs are all known and small is run at once, outside of the trace, so that
//! shapes that are computed from shapes are numbers by the time that they are needed. A rule that needs the numbers of a value that is
//! not known yet says so ([`Importer::needs`]), and whoever traces decides what to do about it.
//!
//! Decision: `docs/decisions/onnx-import-is-a-trace.md`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use tonnage::{Error, ErrorKind, Result, Source, Tensor, bind};

use crate::ahead::Traced;
use crate::call::Call;
use crate::contents::ModelData;
use crate::convolutions::Convolutions;
use crate::layout::{Images, elementwise};
use crate::message::{AttributeValue, FunctionMessage, GraphMessage, NodeMessage};
use crate::rules;
use crate::tables::Tables;
use crate::value::Value;
use crate::weights::Weights;
use crate::wire::bad_file;

/// Known inputs of at most as many elements are computed with at once.
pub const FOLDED: usize = 1 << 12;

/// How deep functions, branches and bodies may call each other.
const DEEPEST: usize = 32;

/// Values by name, with those of the graph around.
pub struct Scope<'s> {
    values: RefCell<HashMap<String, Value>>,
    outer: Option<&'s Scope<'s>>,
}

impl<'s> Scope<'s> {
    /// Without any values of its own.
    pub fn new(outer: Option<&'s Scope<'s>>) -> Scope<'s> {
        Scope { values: RefCell::default(), outer }
    }

    /// Gives a value a name.
    pub fn set(&self, name: &str, value: Value) {
        if !name.is_empty() {
            self.values.borrow_mut().insert(name.to_string(), value);
        }
    }

    /// The value of a name, here or around.
    pub fn get(&self, name: &str) -> Option<Value> {
        let own = self.values.borrow().get(name).cloned();
        own.or_else(|| self.outer.and_then(|outer| outer.get(name)))
    }

    /// All of its own.
    pub fn into_values(self) -> HashMap<String, Value> {
        self.values.into_inner()
    }
}

/// The version of each domain's ops.
pub type Opsets = [(String, i64)];

/// Attributes by name.
pub type Attributes<'m> = Vec<(&'m str, &'m AttributeValue)>;

/// What a rule could not go on without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The numbers of a value.
    Numbers(String),
    /// Numbers that only exist inside of the node: it has to run by itself.
    Alone,
}

/// Walks nodes.
pub struct Importer<'m> {
    /// The model.
    pub model: &'m Arc<ModelData>,
    /// Where its weights are.
    pub weights: &'m Weights,
    /// How images lie.
    pub images: Images,
    /// Tables that are computed row by row.
    pub tables: Tables<'m>,
    /// What a batch normalization may go into.
    pub convolutions: Convolutions<'m>,
    /// What is traced already of the read that it is a part of.
    pub traced: Option<Traced>,
    need: RefCell<Option<Need>>,
    depth: Cell<usize>,
}

impl<'m> Importer<'m> {
    /// For a model.
    pub fn new(model: &'m Arc<ModelData>, weights: &'m Weights) -> Importer<'m> {
        let (images, need, depth) = (Images::default(), RefCell::default(), Cell::new(0));
        let (tables, convolutions) = (Tables::default(), Convolutions::default());
        Importer { model, weights, images, tables, convolutions, traced: None, need, depth }
    }

    /// The same, as a part of a read for which some values are traced already.
    pub fn within(mut self, traced: Traced) -> Importer<'m> {
        self.traced = Some(traced);
        self
    }

    /// Notes what a rule needs, and gives the error that ends it.
    pub fn needs(&self, need: Need) -> Error {
        let what = match &need {
            Need::Numbers(name) => format!("the numbers of `{name}` decide sizes or which ops run"),
            Need::Alone => "its own numbers decide which ops run".to_string(),
        };
        *self.need.borrow_mut() = Some(need);
        bad_file(&self.model.file.path, what, "they are only known when it runs: call it with data")
    }

    /// What the last rule that failed needed.
    pub fn take_need(&self) -> Option<Need> {
        self.need.borrow_mut().take()
    }

    /// The value of a name: of a node, or an initializer.
    fn find(&self, name: &str, scope: &Scope) -> Result<Option<Value>> {
        match scope.get(name) {
            Some(value) => Ok(Some(value)),
            None => Ok(self.model.weight(name)?.map(Value::Tensor)),
        }
    }

    /// Runs a node, by its place in its graph, and puts what it makes into the scope. What is done for it is done for a line of its name.
    pub fn node(
        &self,
        (at, node): (usize, &'m NodeMessage),
        scope: &Scope,
        opsets: &'m Opsets,
        around: &Attributes<'m>,
    ) -> Result<()> {
        let named = format!("node `{}` ({})", node.name, node.op);
        let label = if node.name.is_empty() { &node.op } else { &node.name };
        let file = self.model.file.path.file_name().unwrap_or_default().display();
        let line = Source::of_line(&format!("{file}: {label}"), at as u32 + 1);
        let run = || line.stand_for(|| self.run(node, scope, opsets, around));
        let made = Source::for_layer(label, run).map_err(|error| self.wrap(&named, error))?;
        if made.len() < node.outputs.iter().filter(|name| !name.is_empty()).count() {
            let what = format!("{named} should make {} values", node.outputs.len());
            return Err(bad_file(&self.model.file.path, what, "not all of them are supported"));
        }
        for (name, value) in node.outputs.iter().zip(made) {
            scope.set(name, value);
        }
        Ok(())
    }

    /// The error of a node names it and the file; errors about memory stay what they are.
    fn wrap(&self, named: &str, error: Error) -> Error {
        use ErrorKind::{Interrupted, NeverFits, OverBudget, SystemRefused};
        let own = self.model.file.path.display().to_string();
        match error.kind() {
            NeverFits { .. } | OverBudget { .. } | SystemRefused { .. } | Interrupted => error,
            ErrorKind::BadFile { path, what, help } if *path == own => {
                let what = if what.starts_with("node ") {
                    what.clone()
                } else {
                    format!("{named}: {what}")
                };
                bad_file(&self.model.file.path, what, help)
            }
            _ => bad_file(
                &self.model.file.path,
                format!("{named}: {error}"),
                "it cannot be run as it is",
            ),
        }
    }

    fn run(
        &self,
        node: &'m NodeMessage,
        scope: &Scope,
        opsets: &'m Opsets,
        around: &Attributes<'m>,
    ) -> Result<Vec<Value>> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for name in &node.inputs {
            inputs.push(match name.as_str() {
                "" => Value::Absent,
                name => self.find(name, scope)?.ok_or_else(|| {
                    let what = format!("reads `{name}`, which nothing before it makes");
                    bad_file(&self.model.file.path, what, "the file is damaged")
                })?,
            });
        }
        let mut attributes: Attributes<'m> = Vec::new();
        for attribute in &node.attributes {
            let value = match &attribute.refers {
                None => Some(&attribute.value),
                Some(name) => around.iter().find(|found| found.0 == name).map(|found| found.1),
            };
            attributes.extend(value.map(|value| (attribute.name.as_str(), value)));
        }
        let version = opsets.iter().find(|opset| opset.0 == node.domain).map(|opset| opset.1);
        let call = Call {
            node,
            inputs,
            attributes,
            version: version.unwrap_or(1),
            opsets,
            scope,
            importer: self,
        };
        if let Some(function) = self.model.function(&node.domain, &node.op) {
            return self.function(function, &call);
        }
        let Some(rule) = rules::find(&node.domain, &node.op) else {
            let dot = if node.domain.is_empty() { "" } else { "." };
            let what = format!("the op {}{dot}{} is not supported", node.domain, node.op);
            return Err(bad_file(&self.model.file.path, what, "use a model without it"));
        };
        if let Some(made) = self.weights.ahead.stand_ins(&call, rule)? {
            self.tables.note(&call, rule, &made);
            return Ok(made);
        }
        if bind::is_tracing() && call.is_foldable()? {
            return bind::outside_of_traces(|| rule(&call));
        }
        if let Some(made) = elementwise(&call, rule)? {
            return Ok(made);
        }
        let made = rule(&call)?;
        self.tables.note(&call, rule, &made);
        Ok(made)
    }

    fn deeper<R>(&self, run: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.depth.get() >= DEEPEST {
            let what = format!("functions and bodies nest more than {DEEPEST} deep");
            return Err(bad_file(&self.model.file.path, what, "does one call itself?"));
        }
        self.depth.set(self.depth.get() + 1);
        let made = run();
        self.depth.set(self.depth.get() - 1);
        made
    }

    /// A function is its nodes, with the call's attributes.
    fn function(&self, function: &'m FunctionMessage, call: &Call<'_, 'm>) -> Result<Vec<Value>> {
        let mut attributes = call.attributes.clone();
        for default in &function.defaults {
            if !attributes.iter().any(|given| given.0 == default.name) {
                attributes.push((&default.name, &default.value));
            }
        }
        let scope = Scope::new(None);
        for (at, name) in function.inputs.iter().enumerate() {
            scope.set(name, call.inputs.get(at).cloned().unwrap_or(Value::Absent));
        }
        self.deeper(|| {
            for node in function.nodes.iter().enumerate() {
                self.node(node, &scope, &function.opsets, &attributes)?;
            }
            let outputs = function.outputs.iter();
            outputs.map(|name| Ok(self.find(name, &scope)?.unwrap_or(Value::Absent))).collect()
        })
    }

    /// Runs a graph of an attribute with inputs, and gives its outputs.
    pub fn graph(
        &self,
        graph: &'m GraphMessage,
        inputs: Vec<Value>,
        call: &Call<'_, 'm>,
    ) -> Result<Vec<Value>> {
        let scope = Scope::new(Some(call.scope));
        for stored in &graph.initializers {
            scope.set(&stored.name, Value::Tensor(self.model.stored(stored)?));
        }
        for (input, value) in graph.inputs.iter().zip(inputs) {
            scope.set(&input.name, value);
        }
        self.deeper(|| {
            for node in graph.nodes.iter().enumerate() {
                self.node(node, &scope, call.opsets, &call.attributes)?;
            }
            let outputs = graph.outputs.iter().map(|output| &output.name);
            let all = outputs.map(|name| {
                self.find(name, &scope)?.ok_or_else(|| {
                    let what = format!("its graph gives `{name}`, which nothing makes");
                    bad_file(&self.model.file.path, what, "the file is damaged")
                })
            });
            all.collect()
        })
    }
}

impl Call<'_, '_> {
    /// Whether it can be computed at once.
    fn is_foldable(&self) -> Result<bool> {
        let graphs = self.attributes.iter().any(|a| matches!(a.1, AttributeValue::Graph(_)));
        let tensors = || self.inputs.iter().flat_map(Value::tensors);
        let elements: usize = tensors().map(count).sum();
        let known = !graphs
            && !rules::is_random(&self.node.op)
            && elements <= FOLDED
            && self.inputs.iter().all(Value::is_known);
        for tensor in tensors().filter(|_| known) {
            if self.is_trained(tensor)? || self.importer.weights.ahead.find(tensor).is_some() {
                return Ok(false);
            }
        }
        Ok(known)
    }
}

fn count(tensor: &Tensor) -> usize {
    tensor.shape().count().unwrap_or(usize::MAX / 2)
}
