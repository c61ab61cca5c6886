//! What a tape holds for the way back, op by op and line by line.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use tonnage_core::grad::{Record, decide};
use tonnage_core::graph::ValueId;
use tonnage_core::row::{Call, Keep, kept};
use tonnage_core::{Bytes, Source, Value};

use super::{GradientTape, Log, back};
use crate::tensor::Tensor;
use crate::trace::{self, Trace};

/// What one op keeps for its gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBy {
    /// The op.
    pub op: &'static str,
    /// The user's line.
    pub source: Source,
    /// What its row keeps, without what an earlier op keeps already.
    pub bytes: Bytes,
    /// How much of that is a variable's, and would be there without the tape.
    pub of_variables: Bytes,
}

/// What a tape holds. Prints as a table by op and source line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// One entry for each op, in the order in which they were applied.
    pub ops: Vec<HeldBy>,
}

impl Held {
    /// All of it. Bytes that several ops keep count once; a recipe has none.
    pub fn bytes(&self) -> Bytes {
        self.ops.iter().map(|op| op.bytes).sum()
    }

    /// How much of it is variables', which would be there without the tape.
    pub fn of_variables(&self) -> Bytes {
        self.ops.iter().map(|op| op.of_variables).sum()
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(HeldBy, usize)> = Vec::new();
        let mut place: HashMap<(&str, Source), usize> = HashMap::new();
        for op in &self.ops {
            let at = *place.entry((op.op, op.source)).or_insert(rows.len());
            match rows.get_mut(at) {
                Some((sum, times)) => {
                    sum.bytes += op.bytes;
                    *times += 1;
                }
                None => rows.push((*op, 1)),
            }
        }
        rows.sort_by_key(|(op, _)| std::cmp::Reverse(op.bytes));
        writeln!(f, "{:<16} {:>6} {:>11}  line", "op", "times", "bytes")?;
        for (HeldBy { op, source, bytes, .. }, times) in rows {
            writeln!(f, "{op:<16} {times:>6} {bytes:>11}  {source}")?;
        }
        writeln!(f, "in all: {}, of it variables {}", self.bytes(), self.of_variables())
    }
}

impl GradientTape {
    /// What it holds for the way back: each op with its line and the bytes that its row keeps. In a
    /// function that is traced: what a gradient would keep.
    ///
    /// ```
    /// use tonnage::{Bytes, Elementwise, GradientTape, tensor};
    /// let x = tensor(vec![0.5f32; 1024])?;
    /// let tape = GradientTape::new();
    /// tape.watch(&x);
    /// let y = (&x).tanh()?.sum_all()?;
    /// assert_eq!(tape.held().bytes(), Bytes::new(4096)); // tanh keeps its output, sum nothing
    /// println!("{}", tape.held());
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn held(&self) -> Held {
        let log = self.log.borrow();
        let of_variables: HashSet<u64> = log.variables.values().flatten().copied().collect();
        match trace::enclosing(log.trace) {
            Some(trace) => in_graph(&log, &trace, &of_variables),
            None => {
                let mut seen = HashSet::new();
                let of = |record| in_memory(record, &of_variables, &mut seen);
                Held { ops: log.records.iter().map(of).collect() }
            }
        }
    }
}

fn entry<K>(record: &Record<K>, parts: impl Iterator<Item = (Bytes, bool)>) -> HeldBy {
    let (mut bytes, mut of_variables) = (Bytes::ZERO, Bytes::ZERO);
    for (part, of_variable) in parts {
        bytes += part;
        if of_variable {
            of_variables += part;
        }
    }
    HeldBy { op: record.op.name, source: record.source, bytes, of_variables }
}

fn in_memory(
    record: &Record<u64>,
    of_variables: &HashSet<u64>,
    seen: &mut HashSet<usize>,
) -> HeldBy {
    let part = |value: &Value| -> Option<(Bytes, bool)> {
        let tensor = value.clone().into_held()?.downcast::<Tensor>().ok()?;
        let storage = tensor.array("tape").ok()?.storage();
        let first = seen.insert(Arc::as_ptr(storage) as usize);
        first.then(|| (storage.reserved(), of_variables.contains(&tensor.id())))
    };
    let parts: Vec<(Bytes, bool)> = record.kept.iter().map(|(_, v)| v).filter_map(part).collect();
    entry(record, parts.into_iter())
}

fn in_graph(log: &Log, trace: &Trace, of_variables: &HashSet<u64>) -> Held {
    let records = back::of_trace(trace, log.records.clone(), &log.aliases);
    let state = trace.state();
    let graph = state.builder.graph();
    let Ok(sets) = decide(&records, HashSet::new(), graph) else { return Held { ops: Vec::new() } };
    let name = |id: ValueId| 1 << 63 | trace.number() << 32 | id.index() as u64;
    let mut seen = HashSet::new();
    let ops = records
        .iter()
        .zip(sets)
        .map(|(record, set)| {
            let Record { op, attrs, regions, input_types, .. } = record;
            let call = Call { op: op.name, inputs: input_types, attrs, regions };
            let aux = (op.saves.aux)(&call).unwrap_or_default();
            let bytes = |ty: &tonnage_core::TensorType| {
                ty.bytes(op.name).map_or(Bytes::ZERO, Bytes::rounded)
            };
            let keep = kept(op, set, &record.needs, &call, false).unwrap_or_default();
            let parts = keep.into_iter().filter_map(|keep| {
                let id = match keep {
                    Keep::Input(i) => record.inputs.get(i).copied()?,
                    Keep::Output(i) => record.outputs.get(i).copied()?,
                    Keep::Aux(i) => return aux.get(i).map(|ty| (bytes(ty), false)),
                    Keep::Inputs | Keep::Ends | Keep::Auxes | Keep::Declared => return None,
                };
                let first = seen.insert(id);
                first.then(|| (bytes(graph.ty(id)), of_variables.contains(&name(id))))
            });
            entry(record, parts.collect::<Vec<_>>().into_iter())
        })
        .collect();
    Held { ops }
}
