//! The backward pass: from targets and their gradients to those of the sources.

use std::collections::{HashMap, HashSet};

use tonnage_core::grad::{Cotangent, Record, backward, choose};
use tonnage_core::graph::ValueId;
use tonnage_core::{Dim, Emit, Kind, Mark, Result, Source, TensorType, Value};
use tonnage_ops::{GRAD_OPS, emit};

use super::{Gradient, IndexedSlices, tape_error};
use crate::dispatch::{TensorEmit, hold, unhold};
use crate::tensor::Tensor;
use crate::trace::{self, Trace};

/// The backward pass from a target: what it takes.
pub(super) struct BackwardPass {
    pub records: Vec<Record<u64>>,
    /// For each source, the values that it was used as.
    pub groups: Vec<Vec<u64>>,
    /// What a concrete tensor is called in a trace.
    pub aliases: HashMap<u64, u64>,
    /// The trace that the records are of.
    pub trace: Option<u64>,
}

/// Refuses targets that have no gradient.
pub(super) fn check_targets(targets: &[Tensor]) -> Result<()> {
    match targets.iter().enumerate().find(|(_, t)| !t.dtype().is_float()) {
        Some((at, bad)) => {
            let what = format!("target {at} is {}, and only floats have a gradient", bad.ty());
            Err(tape_error(what, "use a float target"))
        }
        None if targets.is_empty() => Err(tape_error("there is no target", "give one")),
        None => Ok(()),
    }
}

/// Refuses gradients that are not those of the targets. Sizes that the data decide are compared as they run.
pub(super) fn check_outputs(targets: &[Tensor], outputs: Option<&[Tensor]>) -> Result<()> {
    let Some(outputs) = outputs else { return Ok(()) };
    if outputs.len() != targets.len() {
        let what = format!("{} gradients for {} targets", outputs.len(), targets.len());
        return Err(tape_error(what, "give one for each target"));
    }
    for (at, (output, target)) in outputs.iter().zip(targets).enumerate() {
        let (given, of) = (output.ty(), target.ty());
        let late = |(a, b): (&Dim, &Dim)| {
            a == b || a.may_equal(b) && (a.depends_on_data() || b.depends_on_data())
        };
        let fits = given.dtype == of.dtype
            && given.shape.rank() == of.shape.rank()
            && given.shape.iter().zip(of.shape.iter()).all(late);
        if !fits {
            let what = format!("the gradient given for target {at} is {given}, the target {of}");
            return Err(tape_error(what, "give a gradient of the target's type"));
        }
    }
    Ok(())
}

impl BackwardPass {
    /// Decides what the records of a trace save, now that it is known what else is saved.
    pub fn choose(&mut self) -> Result<()> {
        let Some(trace) = trace::enclosing(self.trace) else { return Ok(()) };
        let records = std::mem::take(&mut self.records);
        self.records = chosen(&trace, records, &self.aliases)?;
        self.trace = None;
        Ok(())
    }

    /// Gradients of the sources; of the sum of the targets unless `outputs` are given.
    pub fn go(
        mut self,
        targets: &[Tensor],
        outputs: Option<Vec<Tensor>>,
        source: Source,
    ) -> Result<Vec<Gradient>> {
        self.choose()?;
        let mut emit = TensorEmit::new(Mark { source, kind: Kind::Gradient });
        let key = |id: u64| self.aliases.get(&id).copied().unwrap_or(id);
        let mut seeds = Vec::new();
        for (i, target) in targets.iter().enumerate() {
            let seed = match outputs.as_ref().and_then(|given| given.get(i)) {
                Some(output) => emit::reshape(&mut emit, hold(output.clone()), &target.ty().shape)?,
                None => ones(&mut emit, &target.ty())?,
            };
            seeds.push((key(target.id()), Cotangent::Dense(seed)));
        }
        drop(outputs);
        let wanted: Vec<u64> = self.groups.iter().flatten().map(|id| key(*id)).collect();
        let grads = backward(self.records, seeds, &wanted, &mut emit, &GRAD_OPS)?;
        join(grads, &self.groups, &mut emit)
    }
}

fn ones(emit: &mut dyn Emit, ty: &TensorType) -> Result<Value> {
    let one = emit::number(emit, 1, ty.dtype)?;
    emit::broadcast_to(emit, one, &ty.shape)
}

/// One gradient a source: a variable's is the sum over all values that it was read as.
fn join(
    grads: Vec<Option<Cotangent>>,
    groups: &[Vec<u64>],
    emit: &mut dyn Emit,
) -> Result<Vec<Gradient>> {
    let mut grads = grads.into_iter();
    groups
        .iter()
        .map(|group| {
            let mut sum: Option<Cotangent> = None;
            for grad in group.iter().filter_map(|_| grads.next()).flatten() {
                sum = Some(match sum {
                    Some(before) => before.plus(grad, emit, &GRAD_OPS)?,
                    None => grad,
                });
            }
            Ok(match sum {
                None => Gradient::Unconnected,
                Some(Cotangent::Dense(value)) => Gradient::Dense(unhold(value)?),
                Some(Cotangent::Sparse { of, parts }) => {
                    let part = |rows: tonnage_core::grad::SparseRows| {
                        Ok((unhold(rows.indices)?, unhold(rows.values)?))
                    };
                    let parts = parts.into_iter().map(part).collect::<Result<_>>()?;
                    Gradient::Rows(IndexedSlices::from_parts(of, parts))
                }
            })
        })
        .collect()
}

/// A record of a trace by the numbers of its graph.
pub(super) fn of_trace(
    trace: &Trace,
    records: Vec<Record<u64>>,
    aliases: &HashMap<u64, u64>,
) -> Vec<Record<ValueId>> {
    let key = |id: u64| aliases.get(&id).copied().unwrap_or(id);
    let index = |id: u64| ValueId::new((key(id) & 0xffff_ffff) as usize);
    let inside = |id: &u64| key(*id) >> 32 == (1 << 31 | trace.number());
    records
        .into_iter()
        .filter(|r| r.outputs.iter().all(inside))
        .map(|r| renamed(r, index, |value| value))
        .collect()
}

fn chosen(
    trace: &Trace,
    records: Vec<Record<u64>>,
    aliases: &HashMap<u64, u64>,
) -> Result<Vec<Record<u64>>> {
    let name = |id: ValueId| 1 << 63 | trace.number() << 32 | id.index() as u64;
    let records = of_trace(trace, records, aliases);
    let records = choose(records, HashSet::new(), &mut trace.state().builder)?;
    let held = |value: Value| hold(Tensor::from_symbol(value, trace.clone()));
    Ok(records.into_iter().map(|r| renamed(r, name, held)).collect())
}

/// A record with other keys.
fn renamed<K: Copy, L>(
    record: Record<K>,
    key: impl Fn(K) -> L,
    value: impl Fn(Value) -> Value,
) -> Record<L> {
    Record {
        op: record.op,
        attrs: record.attrs,
        regions: record.regions,
        source: record.source,
        inputs: record.inputs.iter().map(|id| key(*id)).collect(),
        needs: record.needs,
        input_types: record.input_types,
        outputs: record.outputs.iter().map(|id| key(*id)).collect(),
        output_types: record.output_types,
        saved: record.saved.into_iter().map(|(save, v)| (save, value(v))).collect(),
    }
}
