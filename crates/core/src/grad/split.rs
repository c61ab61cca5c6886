//! A graph cut in two for its gradient: forwards with what the rules save as further outputs, and the way
//! back from that. What lies between the two is what the rows declare, and nothing else.
//!
//! Decision: `docs/decisions/functions-under-a-tape.md`.

use std::collections::{HashMap, HashSet};

use super::region::{inputs_of, recorded};
use super::{Cotangent, GradOps, Returned, SparseRows, backward, choose};
use crate::dim::Dim;
use crate::emit::{Emit, Mark, Value};
use crate::error::{ErrorKind, Result};
use crate::graph::{Builder, Graph, ValueId};
use crate::kind::Kind;
use crate::row::{Lower, Mem, Save};
use crate::shape::TensorType;

/// How gradients are returned, and the values that are.
pub(super) fn parts(grads: Vec<Option<Cotangent>>) -> (Vec<Returned>, Vec<Value>) {
    let (mut returned, mut values) = (Vec::new(), Vec::new());
    for grad in grads {
        returned.push(match grad {
            None => Returned::Nothing,
            Some(Cotangent::Dense(value)) => {
                values.push(value);
                Returned::Dense
            }
            Some(Cotangent::Sparse { parts, .. }) => {
                let count = parts.len();
                values.extend(parts.into_iter().flat_map(|rows| [rows.indices, rows.values]));
                Returned::Rows(count)
            }
        });
    }
    (returned, values)
}

/// Gradients for inputs of these types, from the values that a graph returned for them.
pub fn assemble(
    returned: &[Returned],
    types: &[TensorType],
    values: Vec<Value>,
) -> Result<Vec<Option<Cotangent>>> {
    let mut values = values.into_iter();
    let mut next = || {
        values.next().ok_or_else(|| {
            let what = "a graph of gradients returned too little".to_string();
            crate::Error::from(ErrorKind::BadGraph { what })
        })
    };
    returned
        .iter()
        .zip(types)
        .map(|(returned, of)| {
            Ok(match returned {
                Returned::Nothing => None,
                Returned::Dense => Some(Cotangent::Dense(next()?)),
                Returned::Rows(count) => {
                    let mut parts = Vec::new();
                    for _ in 0..*count {
                        parts.push(SparseRows { indices: next()?, values: next()? });
                    }
                    Some(Cotangent::Sparse { of: of.clone(), parts })
                }
            })
        })
        .collect()
}

/// A graph cut in two.
#[derive(Debug, Clone)]
pub struct Split {
    /// The graph, with what is saved besides inputs and outputs as further outputs.
    pub forward: Graph,
    /// What the backward pass reads: inputs and outputs of `forward`.
    pub saved: Vec<Save>,
    /// Takes what is saved and gradients of all float outputs of the graph.
    pub backward: Graph,
    /// What `backward` returns for each input of the graph.
    pub returns: Vec<Returned>,
}

/// Cuts a graph for the gradients of some of its inputs.
pub fn split(graph: &Graph, wanted: &[bool], ops: &'static GradOps) -> Result<Split> {
    let mut builder = Builder::new();
    let inputs = inputs_of(graph, &mut builder);
    let given: Vec<ValueId> = inputs.iter().filter_map(Value::id).collect();
    let (mut outputs, records, asked) = recorded(graph, inputs, wanted, &mut builder)?;
    let results: Vec<ValueId> = outputs.iter().filter_map(Value::id).collect();
    let mut records = choose(records, HashSet::new(), &mut builder)?;

    let mut back = Builder::new();
    let (mut saved, mut known) = (Vec::new(), HashMap::<ValueId, Value>::new());
    let lazy = lazy(builder.graph());
    // A rule is lent more than it may ever read: what the pruned backward pass reads is decided below.
    for (_, value) in records.iter_mut().flat_map(|r| &mut r.saved) {
        let Some(id) = value.id() else { continue };
        *value = match known.get(&id) {
            Some(inside) => inside.clone(),
            None if lazy.contains_key(&id) => {
                recompute(id, builder.graph(), &lazy, &mut known, &mut back)?
            }
            None => {
                let inside = back.input(value.ty().clone(), Kind::Activation, None);
                known.insert(id, inside.clone());
                let place = |ids: &[ValueId]| ids.iter().position(|other| *other == id);
                saved.push(match (place(&given), place(&results)) {
                    (Some(i), _) => Save::Input(i),
                    (None, Some(i)) => Save::Output(i),
                    (None, None) => {
                        outputs.push(value.clone());
                        Save::Output(outputs.len() - 1)
                    }
                });
                inside
            }
        };
    }
    let mut seeds = Vec::new();
    for id in &results {
        let ty = builder.graph().ty(*id).clone();
        if ty.dtype.is_float() {
            let seed = back.input(ty, Kind::Gradient, None);
            seeds.push((*id, Cotangent::Dense(seed)));
        }
    }
    let grads = backward(records, seeds, &asked, &mut back, ops)?;
    let (mut returned, values) = parts(grads);
    let mut backward = back.finish(&values)?;
    backward.prune();
    let mut forward =
        drop_unread(builder.finish(&outputs)?, results.len(), &mut saved, &mut backward);
    // Where the backward pass needs a size that the data decide and reads nothing that has it, such a value is saved too.
    for size in backward.undecided_sizes() {
        let Some(id) = forward.value_of_size(&size) else { continue };
        let inside = backward.add_value(forward.value(id).clone());
        backward.inputs.insert(saved.len(), inside);
        let place = |ids: &[ValueId]| ids.iter().position(|other| *other == id);
        saved.push(match (place(&forward.inputs), place(&forward.outputs)) {
            (Some(i), _) => Save::Input(i),
            (None, Some(i)) => Save::Output(i),
            (None, None) => {
                forward.outputs.push(id);
                Save::Output(forward.outputs.len() - 1)
            }
        });
    }
    let mut of_wanted = returned.drain(..);
    let returns = wanted
        .iter()
        .map(|w| if *w { of_wanted.next() } else { None }.unwrap_or(Returned::Nothing))
        .collect();
    Ok(Split { forward, saved, backward, returns })
}

/// Values that depend on no input and are described rather than held (fills, ranges, random numbers and
/// elementwise functions of those), with their nodes: both halves make them.
fn lazy(graph: &Graph) -> HashMap<ValueId, usize> {
    let mut all = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let light = match node.op.lower {
            Lower::Recipe(_) | Lower::View(_) => true,
            Lower::Tile(_) => !matches!(node.op.mem, Mem::Update(_) | Mem::Alloc),
            _ => false,
        };
        // A size that the data decide is known where it was decided.
        let sized =
            node.outputs.iter().all(|id| !graph.ty(*id).shape.iter().any(Dim::depends_on_data));
        if light && sized && !node.aux && node.inputs.iter().all(|id| all.contains_key(id)) {
            all.extend(node.outputs.iter().map(|id| (*id, at)));
        }
    }
    all
}

/// Such a value, recomputed in another builder.
fn recompute(
    id: ValueId,
    graph: &Graph,
    lazy: &HashMap<ValueId, usize>,
    known: &mut HashMap<ValueId, Value>,
    back: &mut Builder,
) -> Result<Value> {
    if let Some(value) = known.get(&id) {
        return Ok(value.clone());
    }
    let missing = || ErrorKind::BadGraph { what: format!("%{} is not described", id.index()) };
    let node = lazy.get(&id).and_then(|at| graph.nodes.get(*at)).ok_or_else(missing)?;
    let inputs = node
        .inputs
        .iter()
        .map(|input| recompute(*input, graph, lazy, known, back))
        .collect::<Result<Vec<Value>>>()?;
    let outer = back.mark(Mark { source: node.source, kind: Kind::Activation });
    let made = back.emit(node.op, inputs, node.attrs.clone(), node.regions.clone(), false)?;
    back.mark(outer);
    known.extend(node.outputs.iter().copied().zip(made));
    known.get(&id).cloned().ok_or_else(|| missing().into())
}

/// Takes what the backward pass does not read off both halves.
fn drop_unread(
    mut forward: Graph,
    results: usize,
    saved: &mut Vec<Save>,
    backward: &mut Graph,
) -> Graph {
    let read: HashSet<ValueId> =
        backward.nodes.iter().flat_map(|n| &n.inputs).chain(&backward.outputs).copied().collect();
    let is_read: Vec<bool> =
        backward.inputs[..saved.len()].iter().map(|id| read.contains(id)).collect();
    let seeds = backward.inputs.split_off(saved.len());
    let mut flags = is_read.iter();
    backward.inputs.retain(|_| flags.next() == Some(&true));
    backward.inputs.extend(seeds);
    let mut flags = is_read.iter();
    saved.retain(|_| flags.next() == Some(&true));
    // Outputs that are only there to be saved move up.
    let mut outputs: Vec<ValueId> = forward.outputs[..results].to_vec();
    for save in saved.iter_mut() {
        if let Save::Output(i) = save
            && *i >= results
        {
            outputs.push(forward.outputs[*i]);
            *i = outputs.len() - 1;
        }
    }
    forward.outputs = outputs;
    forward.prune();
    forward
}
