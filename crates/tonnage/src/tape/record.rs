//! Recording: what the tapes write down as ops are applied. A record saves what the op's row declares, the
//! cheapest of its alternatives, and nothing else.
//!
//! Decision: `docs/decisions/tapes-see-into-calls.md`.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::grad::Record;
use tonnage_core::graph::Graph;
use tonnage_core::row::{Call, Grad, Save, saved_values};
use tonnage_core::{Bytes, Dim, OpDef, Result, Source, Symbol, TensorType, Value};

use super::{TAPES, TapeLog};
use crate::dispatch::{TensorArgs, hold};
use crate::function::program::TracedProgram;
use crate::grad::{dual, level};
use crate::tensor::Tensor;
use crate::trace;
use crate::tree::Tree;
use crate::variable::Variable;

/// An op that is about to be recorded.
pub(crate) struct PendingRecord {
    logs: SmallVec<[Rc<RefCell<TapeLog>>; 1]>,
    record: Record<u64>,
    save: SmallVec<[Save; 2]>,
    /// The output that would do instead of the aux ones that are saved.
    instead: Option<usize>,
    inputs: SmallVec<[Option<Value>; 3]>,
    tracked: SmallVec<[u64; 3]>,
    /// Outputs that are no aux ones.
    plain: usize,
}

fn recording_logs(ids: &[u64], levels: &Range<u64>) -> SmallVec<[Rc<RefCell<TapeLog>>; 1]> {
    let here = trace::current().map(|t| t.number());
    TAPES.with_borrow(|tapes| {
        tapes
            .iter()
            .filter(|log| {
                let log = log.borrow();
                log.trace == here
                    && levels.contains(&log.level)
                    && log.records()
                    && ids.iter().any(|id| log.tracked.contains(id))
            })
            .cloned()
            .collect()
    })
}

/// Which of these lead from what a tape watches.
pub(crate) fn tracked(inputs: &[Tensor]) -> Vec<bool> {
    let all: SmallVec<[u64; 3]> = inputs.iter().map(Tensor::id).collect();
    let logs = recording_logs(&all, &level::listening());
    let is = |t: &Tensor| logs.iter().any(|log| log.borrow().tracked.contains(&t.id()));
    inputs.iter().map(|t| t.dtype().is_float() && is(t)).collect()
}

/// Whether there is no tape at all: what nearly every call asks first.
pub(crate) fn is_quiet() -> bool {
    TAPES.with_borrow(|tapes| tapes.is_empty())
}

type Ids = SmallVec<[(u64, TensorType); 3]>;

fn begin(
    op: &'static OpDef,
    ids: &Ids,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
    levels: &Range<u64>,
) -> Option<PendingRecord> {
    let all: SmallVec<[u64; 3]> = ids.iter().map(|(id, _)| *id).collect();
    let logs = recording_logs(&all, levels);
    if logs.is_empty() {
        return None;
    }
    let tracked: SmallVec<[bool; 2]> = ids
        .iter()
        .map(|(id, ty)| {
            ty.dtype.is_float() && logs.iter().any(|log| log.borrow().tracked.contains(id))
        })
        .collect();
    if !tracked.contains(&true) {
        return None;
    }
    let record = Record {
        op,
        attrs: attrs.clone(),
        regions: regions.to_vec(),
        source,
        inputs: all.iter().copied().collect(),
        needs: tracked,
        input_types: ids.iter().map(|(_, ty)| ty.clone()).collect(),
        outputs: SmallVec::new(),
        output_types: SmallVec::new(),
        saved: SmallVec::new(),
    };
    Some(PendingRecord {
        logs,
        record,
        save: SmallVec::new(),
        instead: None,
        inputs: SmallVec::new(),
        tracked: all,
        plain: 0,
    })
}

/// An eager op that a tape will want; decides what is saved, which may be an aux output.
pub(crate) fn eager(
    op: &'static OpDef,
    inputs: &TensorArgs,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
) -> Result<Option<PendingRecord>> {
    if is_quiet() {
        return Ok(None);
    }
    let ids: Ids = inputs.iter().map(|i| (i.tensor().id(), i.tensor().ty())).collect();
    let begun = begin(op, &ids, attrs, regions, source, &level::listening());
    let Some(mut recording) = begun else { return Ok(None) };
    recording.decide()?;
    recording.hold(inputs.iter().map(|input| input.tensor()));
    Ok(Some(recording))
}

/// A traced op that a tape will want. What it saves is decided when a gradient is asked for.
pub(crate) fn symbolic(
    op: &'static OpDef,
    inputs: &[Tensor],
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
) -> Option<PendingRecord> {
    if is_quiet() {
        return None;
    }
    let ids: Ids = inputs.iter().map(|t| (t.id(), t.ty())).collect();
    begin(op, &ids, attrs, regions, source, &level::listening())
}

/// Either, for tapes of these levels alone.
pub(crate) fn record(
    op: &'static OpDef,
    inputs: &[Tensor],
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
    levels: Range<u64>,
) -> Result<Option<PendingRecord>> {
    if is_quiet() {
        return Ok(None);
    }
    let ids: Ids = inputs.iter().map(|t| (t.id(), t.ty())).collect();
    let begun = begin(op, &ids, attrs, regions, source, &levels);
    let Some(mut recording) = begun else { return Ok(None) };
    if trace::current().is_none() {
        recording.decide()?;
        recording.hold(inputs.iter());
    }
    Ok(Some(recording))
}

/// How many aux outputs an op has.
pub(crate) fn aux_count(
    op: &'static OpDef,
    inputs: &[Tensor],
    attrs: &Attrs,
    regions: &[Arc<Graph>],
) -> Result<usize> {
    let types: SmallVec<[TensorType; 3]> = inputs.iter().map(Tensor::ty).collect();
    Ok((op.saves.aux)(&Call { op: op.name, inputs: &types, attrs, regions })?.len())
}

impl PendingRecord {
    fn call(&self) -> Call<'_> {
        let Record { op, attrs, regions, input_types, .. } = &self.record;
        Call { op: op.name, inputs: input_types, attrs, regions }
    }

    /// Picks the alternative that takes the fewest bytes.
    fn decide(&mut self) -> Result<()> {
        let op = self.record.op;
        let made = (op.infer)(&self.call())?;
        self.plain = made.len();
        if matches!(op.grad, Grad::Stop(_)) {
            return Ok(());
        }
        let aux = (op.saves.aux)(&self.call())?;
        let bytes = |ty: Option<&TensorType>| {
            ty.and_then(|ty| ty.bytes(op.name).ok()).map_or(u64::MAX, Bytes::get)
        };
        let Record { needs, input_types, .. } = &self.record;
        let twice = self.logs.len() > 1 || !dual::quiet();
        let mut best: Option<(u64, SmallVec<[Save; 2]>)> = None;
        let mut alone = None;
        for set in op.saves.alternatives {
            let save = saved_values(op, set, needs, &self.call(), twice)?;
            if let [Save::Output(output)] = save[..] {
                alone = Some(output);
            }
            let price = save
                .iter()
                .map(|save| match save {
                    Save::Input(i) => bytes(input_types.get(*i)),
                    Save::Output(i) => bytes(made.get(*i)),
                    Save::Aux(i) => bytes(aux.get(*i)),
                    // Spelled out.
                    Save::Inputs | Save::Ends | Save::Auxes | Save::Declared => 0,
                })
                .fold(0, u64::saturating_add);
            if best.as_ref().is_none_or(|(least, _)| price < *least) {
                best = Some((price, save));
            }
        }
        self.save = best.map(|(_, save)| save).unwrap_or_default();
        self.instead = alone.filter(|_| self.wants_aux());
        Ok(())
    }

    /// Takes hold of the inputs that are saved, before the op may overwrite them.
    fn hold<'t>(&mut self, inputs: impl Iterator<Item = &'t Tensor>) {
        let save = &self.save;
        self.inputs = inputs
            .enumerate()
            .map(|(i, tensor)| save.contains(&Save::Input(i)).then(|| hold(tensor.clone())))
            .collect();
    }

    pub fn wants_aux(&self) -> bool {
        self.save.iter().any(|k| matches!(k, Save::Aux(_)))
    }

    /// How many of an eager op's outputs are no aux ones.
    pub fn plain(&self) -> usize {
        self.plain
    }

    /// Writes the sizes that the data decided into the graphs that take values of such sizes, as the backward pass of a
    /// function does: the outputs are there, so the sizes are known.
    fn settle(&mut self, made: &[Tensor]) -> Result<()> {
        if self.record.regions.is_empty() {
            return Ok(());
        }
        let mut sizes: Vec<(Symbol, Dim)> = Vec::new();
        for (open, made) in (self.record.op.infer)(&self.call())?.iter().zip(made) {
            for (dim, size) in open.shape.iter().zip(made.ty().shape.iter()) {
                sizes.extend(dim.solved(size));
            }
        }
        let find =
            |symbol: &Symbol| sizes.iter().find(|(s, _)| s == symbol).map(|(_, n)| n.clone());
        for region in &mut self.record.regions {
            let mut open = false;
            for dim in region.input_types().iter().flat_map(|ty| ty.shape.iter()) {
                dim.symbols(&mut |symbol| open |= find(symbol).is_some());
            }
            if open {
                *region = Arc::new(region.substitute(&find));
            }
        }
        Ok(())
    }

    /// The outputs are there, maybe with aux ones at the end: the record is complete. Traced inputs are
    /// given again: concrete ones among them were captured, and have a name in the trace now.
    pub fn finish(mut self, inputs: &[Tensor], made: &[Tensor]) -> Result<()> {
        let plain = match trace::current() {
            Some(trace) => {
                for (tensor, key) in inputs.iter().zip(self.record.inputs.iter_mut()) {
                    let value = trace.value(tensor, "tape")?;
                    let name = crate::tensor::symbol_key(&trace, &value);
                    if name != *key {
                        for log in &self.logs {
                            log.borrow_mut().aliases.insert(*key, name);
                        }
                        *key = name;
                    }
                }
                made.len().min((self.record.op.infer)(&self.call())?.len())
            }
            None => {
                self.settle(made)?;
                self.plain
            }
        };
        for save in &self.save {
            let saved = match *save {
                Save::Input(i) => self.inputs.get(i).cloned().flatten(),
                Save::Output(i) => made.get(i).cloned().map(hold),
                Save::Aux(i) => made.get(plain + i).cloned().map(hold),
                Save::Inputs | Save::Ends | Save::Auxes | Save::Declared => None,
            };
            self.record.saved.extend(saved.map(|value| (*save, value)));
        }
        for tensor in &made[..plain] {
            self.record.outputs.push(tensor.id());
            self.record.output_types.push(tensor.ty());
        }
        for log in &self.logs {
            let mut log = log.borrow_mut();
            // Each tape records what leads from what it watches, and no more.
            if self.tracked.iter().any(|id| log.tracked.contains(id)) {
                log.tracked.extend(self.record.outputs.iter().copied());
                log.lighten(&self.record);
                if let Some(id) = self.instead.and_then(|i| self.record.outputs.get(i)) {
                    let at = log.records.len();
                    log.instead.insert(*id, at);
                }
                log.records.push(self.record.clone());
            }
        }
        Ok(())
    }
}

impl TapeLog {
    /// A record that saves the result of an earlier one saves it for that one too: aux outputs, such as the bits of
    /// a relu, are not needed beside it. Only later records know, so they are released then.
    fn lighten(&mut self, later: &Record<u64>) {
        for (save, value) in &later.saved {
            let Save::Input(i) = save else { continue };
            let Some(id) = later.inputs.get(*i) else { continue };
            let Some(at) = self.instead.remove(id) else { continue };
            let Some(record) = self.records.get_mut(at) else { continue };
            if let Some(output) = record.outputs.iter().position(|made| made == id) {
                record.saved = SmallVec::from_iter([(Save::Output(output), value.clone())]);
            }
        }
    }
}

/// Whether a tape outside of all traces would record something of a program that runs.
pub(crate) fn sees<A: Tree>(arguments: &A, program: &TracedProgram) -> bool {
    if is_quiet() {
        return false;
    }
    let mut ids: Vec<u64> = program.captured.iter().map(Tensor::id).collect();
    arguments.for_each(&mut |tensor| ids.push(tensor.id()));
    let levels = level::listening();
    TAPES.with_borrow(|tapes| {
        tapes.iter().map(|log| log.borrow()).any(|log| {
            log.trace.is_none()
                && levels.contains(&log.level)
                && log.records()
                && (ids.iter().any(|id| log.tracked.contains(id))
                    || program.variables.iter().any(|(variable, _)| log.watches(variable)))
        })
    })
}

/// Tells the tapes that a variable was read as that tensor.
pub(crate) fn variable_read(variable: &Variable, tensor: &Tensor) {
    if is_quiet() {
        return;
    }
    let here = trace::current().map(|t| t.number());
    TAPES.with_borrow(|tapes| {
        for log in tapes {
            let mut log = log.borrow_mut();
            if log.trace != here || !log.records() || !log.watches(variable) {
                continue;
            }
            log.tracked.insert(tensor.id());
            let keys = log.variables.entry(variable.number()).or_default();
            if !keys.contains(&tensor.id()) {
                keys.push(tensor.id());
            }
        }
    });
}
