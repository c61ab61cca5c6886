//! Second derivatives through a loop: its gradient once more, as two loops.
//!
//! What `while_grad` computes is what two plain loops compute: one forwards that stacks the state of every
//! iteration, and one backwards over those rows, whose body is the step. Both have gradients. That stores the state of
//! every iteration, where `while_grad` stores a few; a loop that only the data end must say how many iterations it
//! may take at most, and runs that many, of which those behind its end do nothing.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall, JvpCall, VjpGraph, jvp_graph, reached, vjp_graph};
use tonnage_core::graph::{Builder, Graph, replay};
use tonnage_core::looping::{Iterations, Loop, LoopGrad, row_of};
use tonnage_core::{Call, DType, Dim, Kind, TensorType};

use super::call::CALL;
use super::cond::COND;
use super::switch::SWITCH;
use super::while_grad::{self, reads};
use super::while_loop::WHILE_LOOP;
use crate::emit;

pub(super) fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let types = call.call();
    let spec = while_grad::spec(&types)?;
    let Some(at) = spec.inputs(call.inputs.len()) else {
        return Err(crate::rules::infer::wrong_attrs(&types));
    };
    // What was handed over is a function of the loop's own inputs: nothing flows through it on its own.
    let own: Vec<usize> = at.own.clone().chain(at.seeds.clone()).chain(at.back.clone()).collect();
    let given: Vec<TensorType> = own.iter().map(|i| call.inputs[*i].clone()).collect();
    let graph = two_loops(&types, spec, &given)?;
    let seeded: Vec<bool> = call.grads.iter().map(Option::is_some).collect();
    let wanted: Vec<bool> = own.iter().map(|i| call.needs[*i]).collect();
    let what = VjpGraph { seeded: &seeded, outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let back = vjp_graph(&graph, what, call.ops)?;
    // A graph that is run once, in the random numbers of what is around it.
    let mut inputs = vec![emit::number(e, 0, DType::I32)?];
    for i in &own {
        inputs.push(call.input(*i)?);
    }
    inputs.extend(call.grads.iter().flatten().cloned());
    let attrs = Attrs::Branch { key: None, updates: Vec::new() };
    let mut made = e.emit(&SWITCH, inputs, attrs, vec![Arc::new(back)], false)?.into_iter();
    let mut grads = vec![None; call.inputs.len()];
    for (i, _) in own.iter().zip(&wanted).filter(|(_, wanted)| **wanted) {
        grads[*i] = made.next().and_then(emit::dense);
    }
    Ok(grads)
}

/// A body or step as it stands in one of the two loops.
struct TwoLoops<'a> {
    spec: &'a LoopGrad,
    condition: Option<&'a Arc<Graph>>,
    body: &'a Graph,
    step: &'a Graph,
    /// What the body takes.
    taken: Vec<TensorType>,
    /// Results of the body that the step reads.
    after: Vec<bool>,
    iterations: Dim,
}

/// The same forwards: tangents of the gradient, as the two loops have them.
pub(super) fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    let given: Vec<TensorType> = call.inputs.iter().map(|v| v.ty().clone()).collect();
    let (op, attrs, regions) = (call.op.name, call.attrs, call.regions);
    let types = Call { op, inputs: &given, attrs, regions };
    let spec = while_grad::spec(&types)?;
    let Some(at) = spec.inputs(call.inputs.len()) else {
        return Err(crate::rules::infer::wrong_attrs(&types));
    };
    let own: Vec<usize> = at.own.clone().chain(at.seeds.clone()).chain(at.back.clone()).collect();
    let given: Vec<TensorType> = own.iter().map(|i| given[*i].clone()).collect();
    let graph = two_loops(&types, spec, &given)?;
    let active: Vec<bool> = own.iter().map(|i| call.tangents[*i].is_some()).collect();
    let wanted = reached(&graph, &active);
    let mut both = jvp_graph(&graph, &active, &wanted, call.ops)?;
    both.outputs.drain(..wanted.len());
    both.prune();
    let mut inputs: Vec<Value> = own.iter().map(|i| call.inputs[*i].clone()).collect();
    inputs.extend(own.iter().filter_map(|i| call.tangents[*i].clone()));
    let mut made = e.emit(&CALL, inputs, Attrs::None, vec![Arc::new(both)], false)?.into_iter();
    Ok(wanted.iter().map(|w| if *w { made.next() } else { None }).collect())
}

fn two_loops(call: &Call, spec: &LoopGrad, given: &[TensorType]) -> Result<Graph> {
    let (Some((condition, body)), Some(step)) =
        (spec.of.regions(call.regions), call.regions.last())
    else {
        return Err(crate::rules::infer::wrong_attrs(call));
    };
    let iterations = match &spec.of.iterations {
        Iterations::Times(n) => n.clone(),
        Iterations::While { most: Some(most) } => Dim::Known(*most as usize),
        Iterations::While { most: None } => {
            let why = "second derivatives through a loop that only the data end; say how many iterations it may take at most"
                .into();
            return Err(ErrorKind::NoGradient { op: call.op, why }.into());
        }
    };
    let known = &step.inputs[body.inputs.len()..body.inputs.len() + spec.of.carried];
    let parts = TwoLoops {
        spec,
        condition,
        body,
        step,
        taken: body.input_types(),
        after: known.iter().map(|id| reads(step, *id)).collect(),
        iterations,
    };
    let mut builder = Builder::new();
    let inputs: Vec<Value> =
        given.iter().map(|ty| builder.input(ty.clone(), Kind::Activation, None)).collect();
    let own = parts.body.inputs.len();
    let (of_loop, backwards) = inputs.split_at(own);
    let (seeds, back) = backwards.split_at(spec.seeds);
    // Forwards: the states before every iteration, those behind it that the step reads, and whether it ran.
    let forwards = parts.forwards()?;
    let stacked_rows = forwards.outputs.len() - spec.of.carried;
    let rows_of = |stacked, reverse, carried, sliced| {
        Attrs::Loop(Box::new(Loop {
            carried,
            sliced,
            stacked,
            iterations: Iterations::Times(parts.iterations.clone()),
            reverse,
            max_checkpoints: spec.of.max_checkpoints,
            spills: spec.of.spills,
            key: spec.of.key,
            updates: Vec::new(),
        }))
    };
    let attrs = rows_of(stacked_rows, spec.of.reverse, spec.of.carried, spec.of.sliced);
    let regions = vec![Arc::new(forwards)];
    let made = builder.emit(&WHILE_LOOP, of_loop.to_vec(), attrs, regions, false)?;
    // Backwards, over those rows.
    let mut inputs = back.to_vec();
    inputs.extend(made[spec.of.carried..].iter().cloned());
    inputs.extend(of_loop[spec.of.sliced_inputs()].iter().cloned());
    inputs.extend(seeds.iter().cloned());
    let sliced = inputs.len() - back.len();
    inputs.extend(of_loop[spec.of.sliced_inputs().end..].iter().cloned());
    let attrs = rows_of(spec.stacked, !spec.of.reverse, spec.back, sliced);
    let regions = vec![Arc::new(parts.backwards(seeds)?)];
    let made = builder.emit(&WHILE_LOOP, inputs, attrs, regions, false)?;
    builder.finish(&made)
}

impl TwoLoops<'_> {
    /// The body; it returns the carried values, and as rows what they were, what the step reads of what they
    /// became, and, where a condition ends the loop, whether it held.
    fn forwards(&self) -> Result<Graph> {
        let mut builder = Builder::new();
        let inputs = open(&mut builder, &self.taken);
        let carried = self.spec.of.carried;
        let (made, held) = match self.condition {
            None => (replay(self.body, inputs.clone(), &mut builder)?, None),
            Some(condition) => {
                let held = replay(condition, inputs.clone(), &mut builder)?.swap_remove(0);
                let same = pass(&self.taken, 0..carried)?;
                let choice = std::iter::once(held.clone()).chain(inputs.iter().cloned()).collect();
                let branches = vec![Arc::new(self.body.clone()), Arc::new(same)];
                (builder.emit(&COND, choice, call_attrs(), branches, false)?, Some(held))
            }
        };
        let mut outputs = made.clone();
        outputs.extend(inputs[..carried].iter().cloned());
        let after = made.iter().zip(&self.after).filter(|(_, read)| **read);
        outputs.extend(after.map(|(value, _)| value.clone()));
        outputs.extend(held);
        builder.finish(&outputs)
    }

    /// The step, with what is carried backwards first; where a condition ended the loop, it runs for iterations
    /// that were run.
    fn backwards(&self, seeds: &[Value]) -> Result<Graph> {
        let mut builder = Builder::new();
        let carried = self.spec.of.carried;
        let (own, rest) = self.step.inputs.split_at(self.body.inputs.len());
        let types = |ids: &[tonnage_core::ValueId]| -> Vec<TensorType> {
            ids.iter().map(|id| self.step.ty(*id).clone()).collect()
        };
        let back = types(&rest[carried + seeds.len()..]);
        let back = open(&mut builder, &back);
        let before = open(&mut builder, &self.taken[..carried]);
        let after: Vec<Option<Value>> = self
            .after
            .iter()
            .zip(&self.taken)
            .map(|(read, ty)| read.then(|| builder.input(ty.clone(), Kind::Activation, None)))
            .collect();
        let held = self
            .condition
            .map(|_| builder.input(TensorType::new(DType::Bool, ()), Kind::Activation, None));
        let sliced = open(&mut builder, &self.taken[self.spec.of.sliced_inputs()]);
        let seed_rows: Vec<TensorType> = seeds.iter().filter_map(|s| row_of(s.ty())).collect();
        let seeds = open(&mut builder, &seed_rows);
        let read = open(&mut builder, &self.taken[self.spec.of.sliced_inputs().end..]);
        // In the step's own order; a result that it does not read stands for itself.
        let after = after.into_iter().zip(&before).map(|(a, b)| a.unwrap_or_else(|| b.clone()));
        let after: Vec<Value> = after.collect();
        let taken: Vec<Value> =
            [before.clone(), sliced, read, after, seeds, back].into_iter().flatten().collect();
        debug_assert_eq!(taken.len(), own.len() + rest.len());
        let made = match held {
            None => replay(self.step, taken, &mut builder)?,
            Some(held) => {
                let types: Vec<TensorType> = taken.iter().map(|v| v.ty().clone()).collect();
                let same = pass(&types, types.len() - self.spec.back..types.len())?;
                let inputs = std::iter::once(held).chain(taken).collect();
                let branches = vec![Arc::new(self.step.clone()), Arc::new(same)];
                builder.emit(&COND, inputs, call_attrs(), branches, false)?
            }
        };
        builder.finish(&made)
    }
}

fn open(builder: &mut Builder, types: &[TensorType]) -> Vec<Value> {
    types.iter().map(|ty| builder.input(ty.clone(), Kind::Activation, None)).collect()
}

/// A branch that returns some of what it takes.
fn pass(types: &[TensorType], range: std::ops::Range<usize>) -> Result<Graph> {
    let mut builder = Builder::new();
    let inputs = open(&mut builder, types);
    builder.finish(&inputs[range])
}

/// A branch that draws the random numbers of what is around it.
fn call_attrs() -> Attrs {
    Attrs::Branch { key: None, updates: Vec::new() }
}
