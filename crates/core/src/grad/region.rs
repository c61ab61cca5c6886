//! A whole graph differentiated as another graph, backwards and forwards: what bodies and branches are
//! differentiated with.

use std::collections::HashSet;
use std::sync::Arc;

use smallvec::SmallVec;

use super::forward::zeros;
use super::{Cotangent, Dual, GradOps, JvpCall, Record, Returned, backward, choose, push_forward};
use crate::attrs::Attrs;
use crate::emit::{Emit, Mark, Value};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Renamed;
use crate::graph::{Builder, Graph, ValueId, replay};
use crate::kind::Kind;
use crate::row::OpDef;
use crate::shape::TensorType;

/// An emitter into a builder that writes down what was applied, for the walker.
pub struct Recorder<'a> {
    /// Where the nodes go.
    pub builder: &'a mut Builder,
    /// One record a node; what is saved is decided later, by [`choose`].
    pub records: Vec<Record<ValueId>>,
    /// Values that depend on something whose gradient is wanted.
    pub tracked: HashSet<ValueId>,
}

impl Recorder<'_> {
    fn tracks(&self, value: &Value) -> bool {
        value.ty().dtype.is_float() && value.id().is_some_and(|id| self.tracked.contains(&id))
    }
}

impl Emit for Recorder<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        let made = self.builder.emit(op, inputs.clone(), attrs.clone(), regions.clone(), aux)?;
        let plain = made.len() - if aux { self.builder.aux_count(&made)? } else { 0 };
        let source = self.builder.source();
        if inputs.iter().any(|v| self.tracks(v)) {
            self.tracked.extend(made.iter().filter_map(Value::id));
        }
        self.records.push(Record {
            op,
            attrs,
            regions,
            source,
            inputs: inputs.iter().filter_map(Value::id).collect(),
            needs: inputs.iter().map(|v| self.tracks(v)).collect(),
            input_types: inputs.iter().map(|v| v.ty().clone()).collect(),
            outputs: made[..plain].iter().filter_map(Value::id).collect(),
            output_types: made[..plain].iter().map(|v| v.ty().clone()).collect(),
            saved: SmallVec::new(),
        });
        Ok(made)
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        self.builder.mark(mark)
    }
}

/// What to differentiate a graph for.
#[derive(Debug, Clone, Copy)]
pub struct VjpGraph<'a> {
    /// Which outputs have a gradient; each adds an input to the result.
    pub seeded: &'a [bool],
    /// Types of the outputs as they were made, where sizes that the data decide are known by then; as the graph
    /// has them where it is empty.
    pub outputs: &'a [TensorType],
    /// Which inputs' gradients are wanted; each adds an output to the result.
    pub wanted: &'a [bool],
    /// Outputs whose values come in as inputs too, so that what the rules save of them need not be
    /// recomputed; none where it is empty.
    pub known: &'a [bool],
    /// Inputs whose gradients are added to what comes in: each adds an input to the result. Those of a
    /// table's rows are then added row by row, and no gradient of the whole table is made on its own. None
    /// where it is empty.
    pub sums: &'a [bool],
}

/// A graph that takes the inputs of `graph`, its outputs that are known, gradients of the seeded
/// outputs and sums to add to, and returns gradients of the wanted inputs. It recomputes whatever of
/// `graph` the rules save, and nothing else.
pub fn vjp_graph(graph: &Graph, what: VjpGraph, ops: &'static GradOps) -> Result<Graph> {
    let (mut builder, grads) = differentiate(graph, what, ops)?;
    let wanted = graph.inputs.iter().zip(what.wanted).filter(|(_, w)| **w);
    let results = grads
        .into_iter()
        .zip(wanted)
        .map(|(grad, (id, _))| match grad {
            Some(grad) => grad.dense(&mut builder, ops),
            None => zeros(&mut builder, graph.ty(*id), ops),
        })
        .collect::<Result<Vec<_>>>()?;
    let mut made = builder.finish(&results)?;
    made.prune();
    Ok(made)
}

/// The same, with gradients left as they come: nothing for one that is zero, indices and values for
/// rows. [`assemble`](super::assemble) makes gradients of what such a graph returns.
pub fn vjp_parts(
    graph: &Graph,
    what: VjpGraph,
    ops: &'static GradOps,
) -> Result<(Graph, Vec<Returned>)> {
    let (builder, grads) = differentiate(graph, what, ops)?;
    let (returned, results) = super::split::parts(grads);
    let mut made = builder.finish(&results)?;
    made.prune();
    Ok((made, returned))
}

fn differentiate(
    graph: &Graph,
    what: VjpGraph,
    ops: &'static GradOps,
) -> Result<(Builder, Vec<Option<Cotangent>>)> {
    let mut builder = Builder::new();
    let inputs = inputs_of(graph, &mut builder);
    let flag = |flags: &[bool], i: usize| flags.get(i) == Some(&true);
    let mut like_outputs = |flags: &[bool], kind: Kind| -> Vec<Option<Value>> {
        let types = graph.outputs.iter().enumerate().map(|(i, id)| {
            let ty = what.outputs.get(i).unwrap_or(graph.ty(*id));
            flag(flags, i).then(|| ty.clone())
        });
        types.map(|ty| ty.map(|ty| builder.input(ty, kind, None))).collect()
    };
    let known = like_outputs(what.known, Kind::Activation);
    let seeds = like_outputs(what.seeded, Kind::Gradient);
    let sums: Vec<(ValueId, Value)> = graph
        .inputs
        .iter()
        .enumerate()
        .filter(|(i, _)| flag(what.sums, *i))
        .filter_map(|(i, id)| {
            Some((inputs[i].id()?, builder.input(graph.ty(*id).clone(), Kind::Gradient, None)))
        })
        .collect();
    let (outputs, records, wanted) = recorded(graph, inputs, what.wanted, &mut builder)?;
    let known = sized_as(&outputs, known, &mut builder, ops)?;
    let seeds = sized_as(&outputs, seeds, &mut builder, ops)?;
    let given: Vec<ValueId> = outputs.iter().filter_map(Value::id).collect();
    let held: HashSet<ValueId> =
        given.iter().zip(&known).filter(|(_, k)| k.is_some()).map(|(id, _)| *id).collect();
    let mut records = choose(records, held, &mut builder)?;
    for (_, value) in records.iter_mut().flat_map(|r| &mut r.saved) {
        let mut outputs = given.iter().zip(&known).filter(|(id, _)| Some(**id) == value.id());
        if let Some(better) = outputs.find_map(|(_, known)| known.as_ref()) {
            *value = better.clone();
        }
    }
    let seeds = given
        .iter()
        .zip(seeds)
        .filter_map(|(id, seed)| Some((*id, Cotangent::Dense(seed?))))
        .chain(sums.into_iter().map(|(id, sum)| (id, Cotangent::Dense(sum))))
        .collect();
    let grads = backward(records, seeds, &wanted, &mut builder, ops)?;
    Ok((builder, grads))
}

/// What belongs to outputs, under the names that sizes which the data decide have in the outputs as they are recomputed. A
/// reshape is a view, and compares the sizes as it runs.
fn sized_as(
    outputs: &[Value],
    given: Vec<Option<Value>>,
    builder: &mut Builder,
    ops: &'static GradOps,
) -> Result<Vec<Option<Value>>> {
    let mut sized = Vec::with_capacity(given.len());
    for (value, output) in given.into_iter().zip(outputs) {
        sized.push(match value {
            Some(value) if value.ty().shape != output.ty().shape => {
                let to = Attrs::Shape(output.ty().shape.clone());
                Some(builder.apply(ops.reshape, vec![value], to)?)
            }
            value => value,
        });
    }
    Ok(sized)
}

/// Inputs like those of a graph.
pub(super) fn inputs_of(graph: &Graph, builder: &mut Builder) -> Vec<Value> {
    let input = |id: &ValueId| {
        let info = graph.value(*id);
        builder.input(info.ty.clone(), info.kind, info.name.clone())
    };
    graph.inputs.iter().map(input).collect()
}

/// Outputs, records of what made them, and the inputs whose gradients are wanted.
type Recorded = (Vec<Value>, Vec<Record<ValueId>>, Vec<ValueId>);

/// A graph played into a builder: its outputs, a record of every node, and which inputs are wanted.
pub(super) fn recorded(
    graph: &Graph,
    inputs: Vec<Value>,
    wanted: &[bool],
    builder: &mut Builder,
) -> Result<Recorded> {
    let wanted: Vec<ValueId> =
        inputs.iter().zip(wanted).filter(|(_, w)| **w).filter_map(|(v, _)| v.id()).collect();
    let tracked = wanted.iter().copied().collect();
    let mut recorder = Recorder { builder, records: Vec::new(), tracked };
    let outputs = replay(graph, inputs, &mut recorder)?;
    Ok((outputs, recorder.records, wanted))
}

/// Which outputs of a graph may depend on the inputs that have tangents.
pub fn reached(graph: &Graph, active: &[bool]) -> Vec<bool> {
    let mut moving = vec![false; graph.value_count()];
    for (id, active) in graph.inputs.iter().zip(active) {
        moving[id.index()] = *active && graph.ty(*id).dtype.is_float();
    }
    for node in &graph.nodes {
        if node.inputs.iter().any(|id| moving[id.index()]) {
            for id in &node.outputs {
                moving[id.index()] = graph.ty(*id).dtype.is_float();
            }
        }
    }
    graph.outputs.iter().map(|id| moving[id.index()]).collect()
}

/// A graph that takes the inputs of `graph` and tangents of the active ones, and returns its outputs and
/// tangents of those that are wanted; zeros where an output does not depend on anything active.
pub fn jvp_graph(
    graph: &Graph,
    active: &[bool],
    wanted: &[bool],
    ops: &'static GradOps,
) -> Result<Graph> {
    let mut builder = Builder::new();
    let inputs = inputs_of(graph, &mut builder);
    let mut tangents: Vec<Option<Value>> = vec![None; graph.value_count()];
    for (id, active) in graph.inputs.iter().zip(active) {
        if *active {
            let ty = graph.ty(*id).clone();
            tangents[id.index()] = Some(builder.input(ty, Kind::Activation, None));
        }
    }
    let mut sizes = Renamed::of(graph);
    let mut values: Vec<Option<Value>> = vec![None; graph.value_count()];
    for (id, value) in graph.inputs.iter().zip(inputs) {
        values[id.index()] = Some(value);
    }
    let missing = |id: ValueId| -> Error {
        ErrorKind::BadGraph { what: format!("value %{} is used before it is made", id.index()) }
            .into()
    };
    for node in &graph.nodes {
        let inputs: Vec<Value> = node
            .inputs
            .iter()
            .map(|id| values[id.index()].clone().ok_or_else(|| missing(*id)))
            .collect::<Result<_>>()?;
        let own: Vec<Option<Value>> =
            node.inputs.iter().map(|id| tangents[id.index()].clone()).collect();
        let kind = node.outputs.first().map_or(Kind::Activation, |id| graph.value(*id).kind);
        let outer = builder.mark(Mark { source: node.source, kind });
        let (attrs, regions) = sizes.told(node);
        let made = match own.iter().any(Option::is_some) {
            false => {
                let outputs = builder.emit(node.op, inputs, attrs, regions, node.aux)?;
                Dual { tangents: vec![None; outputs.len()], outputs }
            }
            true => {
                let call = JvpCall {
                    op: node.op,
                    inputs: &inputs,
                    outputs: &[],
                    attrs: &attrs,
                    regions: &regions,
                    tangents: &own,
                    ops,
                };
                push_forward(&mut builder, &call, node.aux).map_err(|e| e.at(node.source))?
            }
        };
        builder.mark(outer);
        let moving = made.tangents.into_iter().chain(std::iter::repeat(None));
        for ((id, value), tangent) in node.outputs.iter().zip(made.outputs).zip(moving) {
            sizes.learn(graph.ty(*id), value.ty());
            values[id.index()] = Some(value);
            tangents[id.index()] = tangent;
        }
    }
    let mut results = Vec::new();
    for id in &graph.outputs {
        results.push(values[id.index()].clone().ok_or_else(|| missing(*id))?);
    }
    for (i, id) in graph.outputs.iter().enumerate().filter(|(i, _)| wanted.get(*i) == Some(&true)) {
        let ty = results[i].ty().clone();
        results.push(match &tangents[id.index()] {
            Some(tangent) => tangent.clone(),
            None => zeros(&mut builder, &ty, ops)?,
        });
    }
    let mut made = builder.finish(&results)?;
    made.prune();
    Ok(made)
}
