//! Recording: what the tapes write down as ops are applied. A record keeps what the op's row declares, the
//! cheapest of its alternatives, and nothing else.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::grad::Record;
use tonnage_core::graph::Graph;
use tonnage_core::row::{Call, Grad, Keep, kept};
use tonnage_core::{Bytes, OpDef, Result, Source, TensorType, Value};

use super::{Log, TAPES};
use crate::dispatch::{Inputs, hold};
use crate::tensor::Tensor;
use crate::trace::{self, Trace};
use crate::variable::Variable;

/// An op that is about to be recorded.
pub(crate) struct Recording {
    logs: SmallVec<[Rc<RefCell<Log>>; 1]>,
    record: Record<u64>,
    keep: SmallVec<[Keep; 2]>,
    inputs: SmallVec<[Option<Value>; 3]>,
    tracked: SmallVec<[u64; 3]>,
}

fn recording_logs(ids: &[u64]) -> SmallVec<[Rc<RefCell<Log>>; 1]> {
    let here = trace::current().map(|t| t.number());
    TAPES.with_borrow(|tapes| {
        tapes
            .iter()
            .filter(|log| {
                let log = log.borrow();
                log.trace == here
                    && !log.paused
                    && !log.used
                    && ids.iter().any(|id| log.tracked.contains(id))
            })
            .cloned()
            .collect()
    })
}

/// Whether no tape is there at all: what every call asks first.
pub(crate) fn quiet() -> bool {
    TAPES.with_borrow(|tapes| tapes.is_empty())
}

fn begin(
    op: &'static OpDef,
    ids: &[(u64, TensorType)],
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
) -> Option<Recording> {
    let all: SmallVec<[u64; 3]> = ids.iter().map(|(id, _)| *id).collect();
    let logs = recording_logs(&all);
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
        kept: SmallVec::new(),
    };
    Some(Recording { logs, record, keep: SmallVec::new(), inputs: SmallVec::new(), tracked: all })
}

/// An eager op that a tape will want; decides what is kept, which may be an aux output.
pub(crate) fn eager(
    op: &'static OpDef,
    inputs: &Inputs,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
) -> Result<Option<Recording>> {
    let ids: SmallVec<[(u64, TensorType); 3]> =
        inputs.iter().map(|i| (i.tensor().id(), i.tensor().ty())).collect();
    let Some(mut recording) = begin(op, &ids, attrs, regions, source) else { return Ok(None) };
    if matches!(op.grad, Grad::Stop(_)) {
        return Ok(Some(recording));
    }
    let types: SmallVec<[TensorType; 3]> = ids.into_iter().map(|(_, ty)| ty).collect();
    let call = Call { op: op.name, inputs: &types, attrs, regions };
    let (made, aux) = ((op.infer)(&call)?, (op.saves.aux)(&call)?);
    let bytes = |ty: Option<&TensorType>| {
        ty.and_then(|ty| ty.bytes(op.name).ok()).map_or(u64::MAX, Bytes::get)
    };
    let price = |set: &&'static [tonnage_core::row::Saved]| -> u64 {
        kept(set, &recording.record.needs)
            .into_iter()
            .map(|keep| match keep {
                Keep::Input(i) => bytes(types.get(i)),
                Keep::Output(i) => bytes(made.get(i)),
                Keep::Aux(i) => bytes(aux.get(i)),
                Keep::Inputs => 0,
            })
            .fold(0, u64::saturating_add)
    };
    let best = op.saves.alternatives.iter().copied().min_by_key(price).unwrap_or(&[]);
    recording.keep = kept(best, &recording.record.needs);
    let mut held = SmallVec::new();
    for (i, input) in inputs.iter().enumerate() {
        held.push(match recording.keep.contains(&Keep::Input(i)) {
            true => Some(hold(input.tensor().clone())),
            false => None,
        });
    }
    recording.inputs = held;
    Ok(Some(recording))
}

/// A traced op that a tape will want.
pub(crate) fn symbolic(
    op: &'static OpDef,
    inputs: &[Tensor],
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
) -> Option<Recording> {
    if quiet() {
        return None;
    }
    let ids: SmallVec<[(u64, TensorType); 3]> = inputs.iter().map(|t| (t.id(), t.ty())).collect();
    begin(op, &ids, attrs, regions, source)
}

impl Recording {
    pub fn wants_aux(&self) -> bool {
        self.keep.iter().any(|k| matches!(k, Keep::Aux(_)))
    }

    /// The outputs are there: the record is complete. Aux outputs leave the list.
    pub fn finish_eager(mut self, made: &mut SmallVec<[Tensor; 1]>) -> Result<()> {
        let aux = match self.wants_aux() {
            true => {
                let record = &self.record;
                let call = Call {
                    op: record.op.name,
                    inputs: &record.input_types,
                    attrs: &record.attrs,
                    regions: &record.regions,
                };
                (record.op.saves.aux)(&call)?.len()
            }
            false => 0,
        };
        let plain = made.len() - aux;
        let value = |tensor: &Tensor| hold(tensor.clone());
        for keep in &self.keep {
            let kept = match *keep {
                Keep::Input(i) => self.inputs.get(i).cloned().flatten(),
                Keep::Output(i) => made.get(i).map(value),
                Keep::Aux(i) => made.get(plain + i).map(value),
                Keep::Inputs => None,
            };
            self.record.kept.extend(kept.map(|value| (*keep, value)));
        }
        made.truncate(plain);
        self.commit(made.iter());
        Ok(())
    }

    pub fn finish_symbolic(
        mut self,
        trace: &Trace,
        inputs: &[Tensor],
        made: &[Tensor],
    ) -> Result<()> {
        // Concrete inputs were captured: they have a name in the trace.
        for (tensor, key) in inputs.iter().zip(self.record.inputs.iter_mut()) {
            let value = trace.value(tensor, "tape")?;
            let name = crate::tensor::symbol_key(trace, &value);
            if name != *key {
                for log in &self.logs {
                    log.borrow_mut().aliases.insert(*key, name);
                }
                *key = name;
            }
        }
        self.commit(made.iter());
        Ok(())
    }

    fn commit<'t>(mut self, made: impl Iterator<Item = &'t Tensor>) {
        for tensor in made {
            self.record.outputs.push(tensor.id());
            self.record.output_types.push(tensor.ty());
        }
        for log in &self.logs {
            let mut log = log.borrow_mut();
            // Each tape records what leads from what it watches, and no more.
            if self.tracked.iter().any(|id| log.tracked.contains(id)) {
                log.tracked.extend(self.record.outputs.iter().copied());
                log.records.push(self.record.clone());
            }
        }
    }
}

/// Tells the tapes that a variable was read as that tensor.
pub(crate) fn variable_read(variable: &Variable, tensor: &Tensor) {
    if quiet() {
        return;
    }
    let here = trace::current().map(|t| t.number());
    TAPES.with_borrow(|tapes| {
        for log in tapes {
            let mut log = log.borrow_mut();
            if log.trace != here {
                continue;
            }
            let number = variable.number();
            let by_itself = log.watch_variables && variable.is_trainable();
            if log.paused || !(by_itself || log.variables.contains_key(&number)) {
                continue;
            }
            log.tracked.insert(tensor.id());
            let keys = log.variables.entry(number).or_default();
            if !keys.contains(&tensor.id()) {
                keys.push(tensor.id());
            }
        }
    });
}
