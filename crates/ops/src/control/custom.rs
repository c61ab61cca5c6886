//! `custom`: a graph with a gradient that its user wrote.
//!
//! Regions: the graph, and the backward pass. The graph returns its results and what is there to be saved; the
//! backward pass takes what is saved and gradients of the float results, and returns gradients of the arguments.
//! What the graph captured besides its arguments (variables, other tensors) is differentiated as usual,
//! and so is what it saves: a second derivative sees how that came about.

use std::sync::Arc;

use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{
    Cotangent, GradCall, JvpCall, Returned, VjpGraph, assemble, jvp_graph, split, vjp_graph,
};
use tonnage_core::graph::{Graph, replay};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Attrs, OpDef};

use super::call::{self, CALL};
use crate::{OpId, emit};

/// A graph with a gradient of its own.
pub static CUSTOM: OpDef = OpDef {
    id: OpId::Custom as u16,
    name: "custom",
    doc: "A graph with a gradient that its user wrote; that gradient says what it saves.",
    infer,
    axes: |call| super::mixed_axes(infer, call),
    mem: Mem::Regions,
    saves: Saves::one_of(&[&[Save::Declared.always()]]),
    remat: Remat::Costly,
    cost: |call| call.regions.first().map_or(Cost::default(), |g| super::region_cost(g)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::Never,
    lower: Lower::Composite(call::expand),
    samples,
};

/// The attributes, read.
struct Custom<'a> {
    args: usize,
    results: usize,
    saved: &'a [Save],
    returns: &'a [Returned],
    exact: bool,
}

fn read<'a>(op: &'static str, attrs: &'a Attrs) -> Result<Custom<'a>> {
    match attrs {
        Attrs::Custom { args, results, saved, returns, exact } => {
            Ok(Custom { args: *args, results: *results, saved, returns, exact: *exact })
        }
        other => Err(bad_argument(op, format!("got the attributes {other:?}"), "see its row")),
    }
}

fn saved(custom: &Custom, find: impl Fn(Save) -> Result<Value>) -> Result<Vec<Value>> {
    custom.saved.iter().map(|save| find(*save)).collect()
}

fn not_saved(save: Save) -> tonnage_core::Error {
    bad_argument("custom", format!("it saves {save:?}"), "save inputs and outputs that it has")
}

fn infer(call: &Call) -> Result<Types> {
    let custom = read(call.op, call.attrs)?;
    let [body, back] = call.regions else {
        return Err(bad_argument(
            call.op,
            "not two graphs",
            "give the graph and its backward pass",
        ));
    };
    super::check_inputs(call, "graph", call.inputs, &body.input_types())?;
    let made = body.output_types();
    let mut taken = Vec::new();
    for save in custom.saved {
        let found = match save {
            Save::Input(i) => call.inputs.get(*i),
            Save::Output(i) => made.get(*i),
            _ => None,
        };
        match found {
            Some(ty) => taken.push(ty.clone()),
            None => return Err(not_saved(*save)),
        }
    }
    taken.extend(made.iter().take(custom.results).filter(|ty| ty.dtype.is_float()).cloned());
    super::check_inputs(call, "backward pass", &taken, &back.input_types())?;
    Ok(made.into_iter().collect())
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let custom = read(call.op.name, call.attrs)?;
    let mut grads: Vec<Option<Cotangent>> = vec![None; call.inputs.len()];
    if call.grads[..custom.results].iter().any(Option::is_some) {
        let mut inputs = saved(&custom, |save| match save {
            Save::Input(i) => call.input(i),
            Save::Output(i) => call.output(i),
            other => Err(not_saved(other)),
        })?;
        for (seed, ty) in call.grads[..custom.results].iter().zip(call.outputs) {
            if ty.dtype.is_float() {
                inputs.push(match seed {
                    Some(seed) => seed.clone(),
                    None => emit::zeros(e, ty)?,
                });
            }
        }
        let (back, returned) = needed(&call.regions[1], custom.returns, call.needs);
        let made = e.emit(&CALL, inputs, Attrs::None, vec![Arc::new(back)], false)?;
        let own = assemble(&returned, call.inputs, made)?;
        grads.iter_mut().zip(own).for_each(|(grad, own)| *grad = own);
    }
    // What the rule does not speak of: captured values from the results, all from what was saved.
    let captured: Vec<bool> =
        call.needs.iter().enumerate().map(|(i, need)| *need && i >= custom.args).collect();
    let is_result = |i: usize| i < custom.results;
    for (wanted, results) in [(captured, true), (call.needs.to_vec(), false)] {
        let seeds: Vec<Option<Value>> = call
            .grads
            .iter()
            .enumerate()
            .map(|(i, seed)| seed.clone().filter(|_| is_result(i) == results))
            .collect();
        if !wanted.contains(&true) || seeds.iter().all(Option::is_none) {
            continue;
        }
        let inputs = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
        let more = call::gradient(e, &call.regions[0], inputs, seeds, &wanted, call)?;
        for (grad, more) in grads.iter_mut().zip(more) {
            *grad = match (grad.take(), more) {
                (Some(a), Some(b)) => Some(a.plus(b, e, call.ops)?),
                (a, b) => a.or(b),
            };
        }
    }
    Ok(grads)
}

/// The backward pass without the gradients that were not asked for.
fn needed(back: &Graph, returns: &[Returned], needs: &[bool]) -> (Graph, Vec<Returned>) {
    let (mut outputs, mut returned, mut at) = (Vec::new(), Vec::new(), 0);
    for (returns, need) in returns.iter().zip(needs) {
        let count = match returns {
            Returned::Nothing => 0,
            Returned::Dense => 1,
            Returned::Rows(count) => 2 * count,
        };
        match need {
            true => {
                outputs.extend_from_slice(&back.outputs[at..at + count]);
                returned.push(*returns);
            }
            false => returned.push(Returned::Nothing),
        }
        at += count;
    }
    let mut graph = back.clone();
    graph.outputs = outputs;
    graph.prune();
    (graph, returned)
}

// The user's gradient is linear in the gradients that it is given, so transposed it is the forward map of
// the arguments; everything else goes forwards through the graph.
fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    let custom = read(call.op.name, call.attrs)?;
    let outputs = call.outputs.len();
    let float = |i: usize| call.outputs[i].ty().dtype.is_float();
    let by_rule = |i: usize| i < custom.results && !custom.exact;
    let all: Vec<bool> = call.tangents.iter().map(Option::is_some).collect();
    let captured: Vec<bool> =
        all.iter().enumerate().map(|(i, active)| *active && i >= custom.args).collect();
    let mut tangents: Vec<Option<Value>> = vec![None; outputs];
    for (active, rule) in [(captured, true), (all, false)] {
        let wanted: Vec<bool> = (0..outputs).map(|i| float(i) && by_rule(i) == rule).collect();
        if active.contains(&true) && wanted.contains(&true) {
            let made = forwards(e, call, &active, &wanted)?;
            tangents.iter_mut().zip(made).for_each(|(t, made)| *t = t.take().or(made));
        }
    }
    let moves = call.tangents[..custom.args].iter().any(Option::is_some);
    if !custom.exact && moves {
        for (tangent, more) in tangents.iter_mut().zip(transposed(e, call, &custom)?) {
            *tangent = match (tangent.take(), more) {
                (Some(a), Some(b)) => Some(emit::add(e, a, b)?),
                (a, b) => a.or(b),
            };
        }
    }
    Ok(tangents)
}

/// Tangents of some outputs, by the graph itself.
fn forwards(
    e: &mut dyn Emit,
    call: &JvpCall,
    active: &[bool],
    wanted: &[bool],
) -> Result<Vec<Option<Value>>> {
    let mut both = jvp_graph(&call.regions[0], active, wanted, call.ops)?;
    both.outputs.drain(..wanted.len());
    both.prune();
    let moving =
        call.tangents.iter().zip(active).filter(|(_, a)| **a).filter_map(|(t, _)| t.clone());
    let inputs = call.inputs.iter().cloned().chain(moving).collect();
    let mut made = e.emit(&CALL, inputs, Attrs::None, vec![Arc::new(both)], false)?.into_iter();
    Ok(wanted.iter().map(|w| if *w { made.next() } else { None }).collect())
}

/// Tangents of the results, by the user's gradient.
fn transposed(e: &mut dyn Emit, call: &JvpCall, custom: &Custom) -> Result<Vec<Option<Value>>> {
    let back = &call.regions[1];
    let (mut seeds, mut seeded) = (Vec::new(), Vec::new());
    for (returns, tangent) in custom.returns.iter().zip(call.tangents) {
        match returns {
            Returned::Nothing => {}
            Returned::Dense => {
                seeded.push(tangent.is_some());
                seeds.extend(tangent.clone());
            }
            Returned::Rows(_) => {
                let what = "a custom gradient that returns rows has no forward mode";
                return Err(bad_argument(call.op.name, what, "return a dense gradient"));
            }
        }
    }
    let count = custom.saved.len();
    let wanted: Vec<bool> = (0..back.inputs.len()).map(|i| i >= count).collect();
    let what = VjpGraph { seeded: &seeded, outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let forth = vjp_graph(back, what, call.ops)?;
    let mut inputs = saved(custom, |save| match save {
        Save::Input(i) => call.inputs.get(i).cloned().ok_or_else(|| not_saved(save)),
        Save::Output(i) => call.outputs.get(i).cloned().ok_or_else(|| not_saved(save)),
        other => Err(not_saved(other)),
    })?;
    for id in &back.inputs[count..] {
        inputs.push(emit::zeros(e, back.ty(*id))?);
    }
    inputs.extend(seeds);
    let mut made = replay(&forth, inputs, e)?.into_iter();
    let float = |i: usize| i < custom.results && call.outputs[i].ty().dtype.is_float();
    Ok((0..call.outputs.len()).map(|i| if float(i) { made.next() } else { None }).collect())
}

fn samples() -> Vec<Sample> {
    let made = |exact: bool| -> Result<Sample> {
        let (types, body) = call::sample_body()?;
        let wanted = vec![true; types.len()];
        let halves = split(&body, &wanted, &crate::GRAD_OPS)?;
        let attrs = Attrs::Custom {
            args: types.len(),
            results: body.outputs.len(),
            saved: halves.saved,
            returns: halves.returns,
            exact,
        };
        let mut sample = Sample::of(&types, attrs);
        sample.regions = vec![Arc::new(halves.forward), Arc::new(halves.backward)];
        Ok(sample)
    };
    [true, false].into_iter().filter_map(|exact| made(exact).ok()).collect()
}
