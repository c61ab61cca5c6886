//! Making graphs: the builder, and replaying a graph into any emitter.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::sizes::Renamed;
use super::{Graph, Node, ValueId, ValueInfo};
use crate::attrs::Attrs;
use crate::dim::{Dim, Symbol};
use crate::emit::{Emit, Mark, Value};
use crate::error::{ErrorKind, Result};
use crate::kind::Kind;
use crate::row::{Call, OpDef};
use crate::shape::TensorType;
use crate::source::Source;

/// A graph in the making. Every node's types are inferred as it is added.
#[derive(Debug)]
pub struct Builder {
    graph: Graph,
    /// For each value, the node that defines it and which of its outputs it is.
    makers: Vec<Option<(usize, usize)>>,
    /// Sizes that one value decides, by their name and that value.
    counts: HashMap<(String, ValueId), Symbol>,
    mark: Mark,
}

impl Builder {
    /// An empty graph; nodes belong to the caller's line until [`Emit::mark`] says otherwise.
    #[track_caller]
    pub fn new() -> Builder {
        let mark = Mark { source: Source::here(), kind: Kind::Activation };
        Builder { graph: Graph::default(), makers: Vec::new(), counts: HashMap::new(), mark }
    }

    /// The graph as far as it has come.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Adds an input.
    pub fn input(&mut self, ty: TensorType, kind: Kind, name: Option<Arc<str>>) -> Value {
        let id = self.add(ty.clone(), kind, name, None);
        self.graph.inputs.push(id);
        Value::node(ty, id)
    }

    /// The line that nodes belong to now.
    pub fn source(&self) -> Source {
        self.mark.source
    }

    /// The node that defines a value; none for an input.
    pub fn maker(&self, id: ValueId) -> Option<usize> {
        self.makers.get(id.index()).copied().flatten().map(|(node, _)| node)
    }

    /// How many of a node's outputs, all of which are given, are aux ones.
    pub fn aux_count(&self, outputs: &[Value]) -> Result<usize> {
        let first = outputs.first().and_then(Value::id);
        match first.and_then(|id| self.makers[id.index()]) {
            Some((at, _)) if self.graph.nodes[at].aux => {
                let node = &self.graph.nodes[at];
                Ok(self.graph.with_call(node, node.op.saves.aux)?.len())
            }
            _ => Ok(0),
        }
    }

    /// The value of that number.
    pub fn value(&self, id: ValueId) -> Value {
        Value::node(self.graph.ty(id).clone(), id)
    }

    /// The aux outputs of the node that defined `value`, made from now on if they were not.
    pub fn aux(&mut self, value: ValueId) -> Result<Vec<Value>> {
        let Some((at, _)) = self.makers[value.index()] else { return Ok(Vec::new()) };
        let op = self.graph.nodes[at].op;
        if !self.graph.nodes[at].aux {
            let node = &self.graph.nodes[at];
            let (types, mark) = (
                self.graph.with_call(node, op.saves.aux)?,
                Mark { source: node.source, kind: Kind::Activation },
            );
            let outer = self.mark(mark);
            for ty in types {
                let output = self.graph.nodes[at].outputs.len();
                let id = self.add(ty, Kind::Activation, None, Some((at, output)));
                self.graph.nodes[at].outputs.push(id);
            }
            self.graph.nodes[at].aux = true;
            self.mark(outer);
        }
        let node = &self.graph.nodes[at];
        let count = self.graph.with_call(node, op.infer)?.len();
        Ok(node.outputs[count..].iter().map(|id| self.value(*id)).collect())
    }

    /// The finished graph.
    pub fn finish(mut self, outputs: &[Value]) -> Result<Graph> {
        self.graph.outputs =
            outputs.iter().map(|v| self.own(v, "return")).collect::<Result<_>>()?;
        self.graph.nodes.shrink_to_fit();
        Ok(self.graph)
    }

    fn add(
        &mut self,
        ty: TensorType,
        kind: Kind,
        name: Option<Arc<str>>,
        maker: Option<(usize, usize)>,
    ) -> ValueId {
        self.makers.push(maker);
        self.graph.add_value(ValueInfo { ty, kind, name, source: self.mark.source })
    }

    /// Just inferred types, with one symbol for every size of the same name that the same value decides.
    fn settle(&mut self, made: &mut [TensorType], inputs: &[ValueId]) {
        if !made.iter().any(|ty| ty.shape.iter().any(Dim::depends_on_data)) {
            return;
        }
        let counts = RefCell::new(&mut self.counts);
        let known = |symbol: &Symbol| {
            let by = inputs.get(symbol.input()?)?;
            let mut counts = counts.borrow_mut();
            let one = counts.entry((symbol.name().to_string(), *by)).or_insert_with(|| {
                // One that is named for good: an op that passes it on has other inputs.
                let bound = symbol.bound().cloned().unwrap_or(Dim::Known(0));
                Symbol::bounded(symbol.name(), bound)
            });
            Some(Dim::symbol(one.clone()))
        };
        made.iter_mut().for_each(|ty| *ty = ty.substitute(&known));
    }

    fn own(&self, value: &Value, op: &'static str) -> Result<ValueId> {
        match value.id() {
            Some(id) if id.index() < self.graph.value_count() => Ok(id),
            _ => Err(ErrorKind::Escaped { op }.into()),
        }
    }
}

impl Default for Builder {
    #[track_caller]
    fn default() -> Builder {
        Builder::new()
    }
}

impl Emit for Builder {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        let at = self.mark.source;
        let ids: Vec<ValueId> =
            inputs.iter().map(|v| self.own(v, op.name)).collect::<Result<_>>()?;
        let types: Vec<TensorType> = inputs.into_iter().map(|v| v.ty().clone()).collect();
        let call = Call { op: op.name, inputs: &types, attrs: &attrs, regions: &regions };
        let mut made = (op.infer)(&call).map_err(|e| e.at(at))?;
        if aux {
            made.extend((op.saves.aux)(&call).map_err(|e| e.at(at))?);
        }
        self.settle(&mut made, &ids);
        let node = self.graph.nodes.len();
        let kind = self.mark.kind;
        let values: Vec<Value> = made
            .into_iter()
            .enumerate()
            .map(|(i, ty)| Value::node(ty.clone(), self.add(ty, kind, None, Some((node, i)))))
            .collect();
        let outputs = values.iter().filter_map(Value::id).collect();
        self.graph.nodes.push(Node { op, attrs, inputs: ids, outputs, aux, regions, source: at });
        Ok(values)
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        std::mem::replace(&mut self.mark, mark)
    }
}

/// Applies every op of `graph` through `emit`, with `inputs` for its inputs, and returns its outputs.
///
/// Each value is given up at its last use, so that eager mode frees and reuses as it goes. A size that the data decide
/// gets the name, or in eager mode the number, that the emitter gives it, in attributes and regions of later nodes too.
pub fn replay(graph: &Graph, inputs: Vec<Value>, emit: &mut dyn Emit) -> Result<Vec<Value>> {
    let mut sizes = Renamed::of(graph);
    let mut left = vec![0usize; graph.value_count()];
    for id in graph.nodes.iter().flat_map(|n| &n.inputs).chain(&graph.outputs) {
        left[id.index()] += 1;
    }
    let mut held: Vec<Option<Value>> = vec![None; graph.value_count()];
    for (id, value) in graph.inputs.iter().zip(inputs) {
        sizes.learn(graph.ty(*id), value.ty());
        held[id.index()] = (left[id.index()] > 0).then_some(value);
    }
    let take = |held: &mut Vec<Option<Value>>, left: &mut Vec<usize>, id: ValueId| {
        left[id.index()] -= 1;
        let slot = &mut held[id.index()];
        let value = if left[id.index()] == 0 { slot.take() } else { slot.clone() };
        value.ok_or_else(|| {
            ErrorKind::BadGraph { what: format!("value %{} is used before it is made", id.0) }
                .into()
        })
    };
    for node in &graph.nodes {
        let inputs = node
            .inputs
            .iter()
            .map(|id| take(&mut held, &mut left, *id))
            .collect::<Result<Vec<_>>>()?;
        let kind = node.outputs.first().map_or(Kind::Activation, |id| graph.value(*id).kind);
        let outer = emit.mark(Mark { source: node.source, kind });
        let (attrs, regions) = sizes.told(node);
        let made = emit.emit(node.op, inputs, attrs, regions, node.aux);
        emit.mark(outer);
        for (id, value) in node.outputs.iter().zip(made?) {
            sizes.learn(graph.ty(*id), value.ty());
            held[id.index()] = (left[id.index()] > 0).then_some(value);
        }
    }
    graph.outputs.iter().map(|id| take(&mut held, &mut left, *id)).collect()
}
