//! What a tape holds for the backward pass, op by op and line by line.

use std::collections::{HashMap, HashSet};
use std::fmt;

use tonnage_core::grad::{Record, decide};
use tonnage_core::graph::ValueId;
use tonnage_core::row::{Call, Save, saved_values};
use tonnage_core::{Bytes, Source, Value};

use super::{GradientTape, TapeLog, backward};
use crate::tensor::Tensor;
use crate::trace::{self, Trace};

/// What one op saves for its gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedByOp {
    /// The op.
    pub op: &'static str,
    /// The user's line.
    pub source: Source,
    /// What its row saves, without what an earlier op saves already.
    pub bytes: Bytes,
    /// How much of that is there without the tape: variables, what it was told to watch and, in a function,
    /// what comes in from outside.
    pub of_sources: Bytes,
}

/// What a tape holds. Prints as a table by op and source line.
///
/// ```
/// use tonnage::{Elementwise, GradientTape, tensor};
/// let x = tensor(vec![0.5f32; 1024])?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = ((&x).tanh()? + 1.0)?;
/// let held = tape.held();
/// assert_eq!(held.bytes().get(), 4096); // the output of tanh; a sum saves nothing
/// println!("{held}");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedForBackward {
    /// One entry for each op, in the order in which they were applied.
    pub ops: Vec<SavedByOp>,
}

impl SavedForBackward {
    /// All of it. Bytes that several ops save count once; a recipe has none.
    pub fn bytes(&self) -> Bytes {
        self.ops.iter().map(|op| op.bytes).sum()
    }

    /// How much of it is there without the tape: variables, what it was told to watch and, in a function,
    /// what comes in from outside.
    pub fn of_sources(&self) -> Bytes {
        self.ops.iter().map(|op| op.of_sources).sum()
    }
}

impl fmt::Display for SavedForBackward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(SavedByOp, usize)> = Vec::new();
        let mut row_of: HashMap<(&str, Source), usize> = HashMap::new();
        for op in &self.ops {
            let at = *row_of.entry((op.op, op.source)).or_insert(rows.len());
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
        for (SavedByOp { op, source, bytes, .. }, times) in rows {
            writeln!(f, "{op:<16} {times:>6} {bytes:>11}  {source}")?;
        }
        writeln!(f, "in all: {}, of it sources {}", self.bytes(), self.of_sources())
    }
}

impl GradientTape {
    /// What it holds for the backward pass: each op with its line and the bytes that its row saves. In a
    /// function that is traced: what a gradient would save.
    ///
    /// ```
    /// use tonnage::{Bytes, Elementwise, GradientTape, tensor};
    /// let x = tensor(vec![0.5f32; 1024])?;
    /// let tape = GradientTape::new();
    /// tape.watch(&x);
    /// let y = (&x).tanh()?.sum_all()?;
    /// assert_eq!(tape.held().bytes(), Bytes::new(4096)); // tanh saves its output, sum nothing
    /// println!("{}", tape.held());
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn held(&self) -> SavedForBackward {
        let log = self.log.borrow();
        let reads = log.variables.values().flatten();
        let sources: HashSet<u64> = reads.chain(&log.watched).copied().collect();
        match trace::enclosing(log.trace) {
            Some(trace) => in_graph(&log, &trace, &sources),
            None => {
                let mut seen = HashSet::new();
                let of = |record| in_memory(record, &sources, &mut seen);
                SavedForBackward { ops: log.records.iter().map(of).collect() }
            }
        }
    }
}

fn entry<K>(record: &Record<K>, parts: impl Iterator<Item = (Bytes, bool)>) -> SavedByOp {
    let (mut bytes, mut of_sources) = (Bytes::ZERO, Bytes::ZERO);
    for (part, of_source) in parts {
        bytes += part;
        if of_source {
            of_sources += part;
        }
    }
    SavedByOp { op: record.op.name, source: record.source, bytes, of_sources }
}

fn in_memory(record: &Record<u64>, sources: &HashSet<u64>, seen: &mut HashSet<usize>) -> SavedByOp {
    let part = |value: &Value| -> Option<(Bytes, bool)> {
        let tensor = value.clone().into_held()?.downcast::<Tensor>().ok()?;
        let storage = tensor.array("tape").ok()?.storage();
        let first = seen.insert(std::ptr::from_ref(storage) as usize);
        first.then(|| (storage.reserved(), sources.contains(&tensor.id())))
    };
    let parts: Vec<(Bytes, bool)> = record.saved.iter().map(|(_, v)| v).filter_map(part).collect();
    entry(record, parts.into_iter())
}

fn in_graph(log: &TapeLog, trace: &Trace, sources: &HashSet<u64>) -> SavedForBackward {
    let records = backward::of_trace(trace, log.records.clone(), &log.aliases);
    let state = trace.state();
    let graph = state.builder.graph();
    let Ok(sets) = decide(&records, HashSet::new(), graph) else {
        return SavedForBackward { ops: Vec::new() };
    };
    let name = |id: ValueId| 1 << 63 | trace.number() << 32 | id.index() as u64;
    let given: HashSet<ValueId> = graph.inputs.iter().copied().collect();
    let is_source = |id: ValueId| given.contains(&id) || sources.contains(&name(id));
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
            let save = saved_values(op, set, &record.needs, &call, false).unwrap_or_default();
            let parts = save.into_iter().filter_map(|save| {
                let id = match save {
                    Save::Input(i) => record.inputs.get(i).copied()?,
                    Save::Output(i) => record.outputs.get(i).copied()?,
                    Save::Aux(i) => return aux.get(i).map(|ty| (bytes(ty), false)),
                    Save::Inputs | Save::Ends | Save::Auxes | Save::Declared => return None,
                };
                let first = seen.insert(id);
                first.then(|| (bytes(graph.ty(id)), is_source(id)))
            });
            entry(record, parts.collect::<Vec<_>>().into_iter())
        })
        .collect();
    SavedForBackward { ops }
}
