//! Gradients of a graph that is being traced: its nodes are the records, so no tape has to have been there.
//!
//! Decision: `docs/decisions/gradients-without-a-tape.md`.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;
use tonnage_core::grad::Record;
use tonnage_core::graph::ValueId;
use tonnage_core::{ErrorKind, Result, Source};

use super::backward::{BackwardPass, check_outputs, check_targets};
use super::{Gradient, Sources};
use crate::tensor::{Tensor, TensorRepr, symbol_key};
use crate::trace::{self, Trace};

/// Gradients of the sum of targets with respect to sources, inside of a function or of a graph, by its nodes so far.
/// `outputs` are gradients of the targets, ones where there are none.
///
/// Sources are values of the graph, variables that it read, and tensors that it captured.
///
/// # Errors
/// Where a target is no value of a graph that is being built.
///
/// ```
/// use tonnage::{Tensor, bind, function, tensor};
/// let slope = function(|x: Tensor| {
///     let y = (&x * &x)?;
///     bind::gradients(&[y], None, [&x])?.remove(0).tensor()
/// });
/// assert_eq!(slope.call(tensor(3.0f32)?)?.scalar::<f32>()?, 6.0);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn gradients(
    targets: &[Tensor],
    outputs: Option<Vec<Tensor>>,
    sources: impl Sources,
) -> Result<Vec<Gradient>> {
    let source = Source::here();
    let walk = || {
        check_targets(targets)?;
        check_outputs(targets, outputs.as_deref())?;
        let trace = trace_of(targets)?;
        pass(&trace, &sources)?.go(targets, outputs, source)
    };
    walk().map_err(|e| e.at(source))
}

/// The graph that the targets are values of.
fn trace_of(targets: &[Tensor]) -> Result<Trace> {
    let symbol = targets.iter().find_map(|target| match target.repr() {
        TensorRepr::Symbolic(symbol) => Some(symbol.trace.clone()),
        _ => None,
    });
    let trace = symbol.and_then(|trace| trace::enclosing(Some(trace.number())));
    trace.ok_or_else(|| ErrorKind::Escaped { op: "gradients" }.into())
}

/// All nodes as records, and what the sources are called in the graph.
fn pass(trace: &Trace, sources: &impl Sources) -> Result<BackwardPass> {
    let key = |id: ValueId| 1 << 63 | trace.number() << 32 | id.index() as u64;
    let state = trace.state();
    let captured: HashMap<u64, u64> =
        state.captured().map(|(tensor, value)| (tensor.id(), symbol_key(trace, value))).collect();
    let mut groups = Vec::new();
    sources.for_each(&mut |source| {
        groups.push(match source.as_variable() {
            Some(variable) => {
                let used = state.variables.iter().find(|used| used.variable.same(variable));
                used.map(|used| symbol_key(trace, &used.input)).into_iter().collect()
            }
            None => source.keys(&HashMap::new()),
        });
    });
    let alias = |id: &u64| captured.get(id).copied().unwrap_or(*id);
    let mut tracked: HashSet<u64> = groups.iter().flatten().map(alias).collect();
    let graph = state.builder.graph();
    let ty = |id: &ValueId| graph.value(*id).ty.clone();
    let mut records = Vec::new();
    for node in &graph.nodes {
        let needs: SmallVec<[bool; 2]> = node
            .inputs
            .iter()
            .map(|id| graph.value(*id).ty.dtype.is_float() && tracked.contains(&key(*id)))
            .collect();
        if !needs.contains(&true) {
            continue;
        }
        let aux = match node.aux {
            true => {
                let types: Vec<_> = node.inputs.iter().map(ty).collect();
                let (attrs, regions) = (&node.attrs, &node.regions[..]);
                let op = node.op.name;
                (node.op.saves.aux)(&tonnage_core::Call { op, inputs: &types, attrs, regions })?
                    .len()
            }
            false => 0,
        };
        let plain = &node.outputs[..node.outputs.len() - aux];
        tracked.extend(plain.iter().map(|id| key(*id)));
        records.push(Record {
            op: node.op,
            attrs: node.attrs.clone(),
            regions: node.regions.clone(),
            source: node.source,
            inputs: node.inputs.iter().map(|id| key(*id)).collect(),
            needs,
            input_types: node.inputs.iter().map(ty).collect(),
            outputs: plain.iter().map(|id| key(*id)).collect(),
            output_types: plain.iter().map(ty).collect(),
            saved: SmallVec::new(),
        });
    }
    drop(state);
    Ok(BackwardPass { records, groups, aliases: captured, trace: Some(trace.number()) })
}
