//! The gradient of a whole graph as another graph: what bodies and branches are differentiated with.

use std::collections::HashSet;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Cotangent, GradOps, Record, backward, choose};
use crate::attrs::Attrs;
use crate::emit::{Emit, Mark, Value};
use crate::error::Result;
use crate::graph::{Builder, Graph, ValueId, replay};
use crate::kind::Kind;
use crate::row::OpDef;
use crate::scalar::Scalar;

/// An emitter into a builder that writes down what was applied, for the walker.
pub struct Recorder<'a> {
    /// Where the nodes go.
    pub builder: &'a mut Builder,
    /// One record a node; what is kept is decided later, by [`choose`].
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
            kept: SmallVec::new(),
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
    /// Which inputs' gradients are wanted; each adds an output to the result.
    pub wanted: &'a [bool],
    /// Outputs whose values come in as inputs too, so that what the rules keep of them need not be
    /// computed again; none where it is empty.
    pub known: &'a [bool],
    /// Inputs whose gradients are added to what comes in: each adds an input to the result. Those of a
    /// table's rows are then added row by row, and no gradient of the whole table is made on its own. None
    /// where it is empty.
    pub sums: &'a [bool],
}

/// A graph that takes the inputs of `graph`, its outputs that are known, gradients of the seeded
/// outputs and sums to add to, and returns gradients of the wanted inputs. It computes again whatever of
/// `graph` the rules keep, and nothing else.
pub fn vjp_graph(graph: &Graph, what: VjpGraph, ops: &'static GradOps) -> Result<Graph> {
    let mut builder = Builder::new();
    let inputs: Vec<Value> = graph
        .inputs
        .iter()
        .map(|id| {
            let info = graph.value(*id);
            builder.input(info.ty.clone(), info.kind, info.name.clone())
        })
        .collect();
    let flag = |flags: &[bool], i: usize| flags.get(i) == Some(&true);
    let known: Vec<Option<Value>> = graph
        .outputs
        .iter()
        .enumerate()
        .map(|(i, id)| {
            let is_known = flag(what.known, i);
            is_known.then(|| builder.input(graph.ty(*id).clone(), Kind::Activation, None))
        })
        .collect();
    let seeds: Vec<Option<Value>> = graph
        .outputs
        .iter()
        .zip(what.seeded)
        .map(|(id, seeded)| {
            seeded.then(|| builder.input(graph.ty(*id).clone(), Kind::Gradient, None))
        })
        .collect();
    let sums: Vec<(ValueId, Value)> = graph
        .inputs
        .iter()
        .enumerate()
        .filter(|(i, _)| flag(what.sums, *i))
        .filter_map(|(i, id)| {
            Some((inputs[i].id()?, builder.input(graph.ty(*id).clone(), Kind::Gradient, None)))
        })
        .collect();
    let wanted: Vec<ValueId> =
        inputs.iter().zip(what.wanted).filter(|(_, w)| **w).filter_map(|(v, _)| v.id()).collect();
    let tracked = wanted.iter().copied().collect();
    let mut recorder = Recorder { builder: &mut builder, records: Vec::new(), tracked };
    let outputs = replay(graph, inputs.clone(), &mut recorder)?;
    let records = recorder.records;

    let given: Vec<ValueId> = outputs.iter().filter_map(Value::id).collect();
    let held: HashSet<ValueId> =
        given.iter().zip(&known).filter(|(_, k)| k.is_some()).map(|(id, _)| *id).collect();
    let mut records = choose(records, held, &mut builder)?;
    for (_, value) in records.iter_mut().flat_map(|r| &mut r.kept) {
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
    let results = grads
        .into_iter()
        .zip(&wanted)
        .map(|(grad, id)| match grad {
            Some(grad) => grad.dense(&mut builder, ops),
            None => {
                let ty = builder.graph().ty(*id).clone();
                let zero = Scalar::Int(0);
                let attrs = Attrs::Fill { value: zero, dtype: ty.dtype, shape: ty.shape };
                builder.apply(ops.fill, Vec::new(), attrs)
            }
        })
        .collect::<Result<Vec<_>>>()?;
    let mut made = builder.finish(&results)?;
    made.prune();
    Ok(made)
}
