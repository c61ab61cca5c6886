//! The walker: backwards through records, a rule at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Cotangent, GradCall, GradOps, rows};
use crate::attrs::Attrs;
use crate::emit::{Emit, Mark, Value};
use crate::error::{ErrorKind, Result};
use crate::graph::Graph;
use crate::kind::Kind;
use crate::row::{Grad, OpDef, Save};
use crate::shape::TensorType;
use crate::source::Source;

/// One op that was applied, and what its row saves of it.
#[derive(Debug, Clone)]
pub struct Record<K> {
    /// The op.
    pub op: &'static OpDef,
    /// What it was told besides its inputs.
    pub attrs: Attrs,
    /// Its bodies and branches.
    pub regions: Vec<Arc<Graph>>,
    /// The user's line.
    pub source: Source,
    /// Who its inputs are.
    pub inputs: SmallVec<[K; 2]>,
    /// Which inputs may lead to something whose gradient is wanted.
    pub needs: SmallVec<[bool; 2]>,
    /// Types of its inputs.
    pub input_types: SmallVec<[TensorType; 2]>,
    /// Who its outputs are, aux ones not included.
    pub outputs: SmallVec<[K; 1]>,
    /// Types of its outputs.
    pub output_types: SmallVec<[TensorType; 1]>,
    /// What its row saves.
    pub saved: SmallVec<[(Save, Value); 2]>,
}

/// Gradients of the seeds with respect to what is wanted; `None` where it does not depend on it.
///
/// Records come in the order in which they were applied and are dropped as they are passed. Nothing
/// is computed that does not lie between a seed and something wanted.
pub fn backward<K: Copy + Eq + std::hash::Hash>(
    mut records: Vec<Record<K>>,
    seeds: Vec<(K, Cotangent)>,
    wanted: &[K],
    emit: &mut dyn Emit,
    ops: &'static GradOps,
) -> Result<Vec<Option<Cotangent>>> {
    let save: HashSet<K> = wanted.iter().copied().collect();
    let mut reaches = save.clone();
    for record in &records {
        if record.inputs.iter().any(|k| reaches.contains(k)) {
            reaches.extend(record.outputs.iter().copied());
        }
    }
    let mut grads: HashMap<K, Cotangent> = HashMap::new();
    for (key, seed) in seeds {
        add(&mut grads, key, seed, emit, ops)?;
    }
    while let Some(record) = records.pop() {
        let mut out: SmallVec<[Option<Cotangent>; 1]> = SmallVec::new();
        for key in &record.outputs {
            // A wanted value keeps its gradient; the rule reads it too.
            let grad = if save.contains(key) { grads.get(key).cloned() } else { grads.remove(key) };
            out.push(grad);
        }
        let needs: SmallVec<[bool; 4]> = record
            .inputs
            .iter()
            .zip(&record.needs)
            .map(|(k, need)| *need && reaches.contains(k))
            .collect();
        if !needs.contains(&true) || out.iter().all(Option::is_none) {
            continue;
        }
        let outer = emit.mark(Mark { source: record.source, kind: Kind::Gradient });
        let made = step(&record, out, &needs, emit, ops).map_err(|e| e.at(record.source));
        let added = made.and_then(|made| {
            for ((key, grad), _) in
                record.inputs.iter().zip(made).zip(&needs).filter(|(_, need)| **need)
            {
                if let Some(grad) = grad {
                    add(&mut grads, *key, grad, emit, ops)?;
                }
            }
            Ok(())
        });
        emit.mark(outer);
        added?;
    }
    Ok(wanted.iter().map(|k| grads.get(k).cloned()).collect())
}

fn step<K>(
    record: &Record<K>,
    out: SmallVec<[Option<Cotangent>; 1]>,
    needs: &[bool],
    emit: &mut dyn Emit,
    ops: &'static GradOps,
) -> Result<Vec<Option<Cotangent>>> {
    let rule = match record.op.grad {
        Grad::Rule(rule) => rule,
        Grad::Stop(why) => {
            return Err(ErrorKind::NoGradient { op: record.op.name, why: why.into() }.into());
        }
    };
    if let Some(made) = rows::through(record, rule, &out, needs, emit, ops)? {
        return Ok(made);
    }
    let grads = out
        .into_iter()
        .map(|g| g.map(|g| g.dense(emit, ops)).transpose())
        .collect::<Result<Vec<_>>>()?;
    let call = GradCall {
        op: record.op,
        inputs: &record.input_types,
        outputs: &record.output_types,
        attrs: &record.attrs,
        regions: &record.regions,
        grads: &grads,
        needs,
        ops,
        saved: &record.saved,
    };
    let made = rule(emit, &call)?;
    if made.len() != record.inputs.len() {
        return Err(ErrorKind::BadGraph {
            what: format!(
                "the gradient rule of {} gave {} gradients for {} inputs",
                record.op.name,
                made.len(),
                record.inputs.len()
            ),
        }
        .into());
    }
    Ok(made)
}

fn add<K: Eq + std::hash::Hash>(
    grads: &mut HashMap<K, Cotangent>,
    key: K,
    grad: Cotangent,
    emit: &mut dyn Emit,
    ops: &GradOps,
) -> Result<()> {
    let sum = match grads.remove(&key) {
        Some(before) => before.plus(grad, emit, ops)?,
        None => grad,
    };
    grads.insert(key, sum);
    Ok(())
}
