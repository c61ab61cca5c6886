//! `while_grad`: the gradient of `while_loop`, in the memory of a few carried states.
//!
//! Regions: the loop's condition, if it has one, its body without its stacked rows, and one step back. The
//! step takes what the body took, what the body made of the carried values, rows of the stacked outputs'
//! gradients, and what is carried backwards (gradients of the float values that the body made, sums so
//! far); it returns what is carried backwards and rows of the sliced inputs' gradients. The executor goes back
//! from checkpoint to checkpoint, recomputing the iterations between them.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{GradOps, VjpGraph, vjp_graph};
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::looping::{Iterations, Loop, LoopGrad, row_of, stacked};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Region, Remat, Save, Saves, Types,
};
use tonnage_core::{DType, OpDef, TensorType};

use super::flow::Flow;
use super::{samples, second_order, while_loop};
use crate::{OpId, rules};

/// The gradient of a loop.
pub static WHILE_GRAD: OpDef = OpDef {
    id: OpId::WhileGrad as u16,
    name: "while_grad",
    doc: "The gradient of a loop, in the memory of a few carried states.",
    infer,
    axes: |call| super::mixed_axes(infer, call),
    mem: Mem::Regions,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost,
    grad: Grad::Rule(second_order::grad),
    jvp: Jvp::Rule(second_order::jvp),
    fails: Fails::Never,
    lower: Lower::Region(Region::LoopGrad),
    samples: samples::gradients,
};

/// What the gradient of a loop is told.
pub(super) fn spec<'a>(call: &Call<'a>) -> Result<&'a LoopGrad> {
    match call.attrs {
        Attrs::LoopGrad(spec) => Ok(spec),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let spec = spec(call)?;
    let expected = if spec.of.has_condition() { 3 } else { 2 };
    let (body, step) = match (spec.of.regions(call.regions), call.regions.last()) {
        (Some((_, body)), Some(step)) if call.regions.len() == expected => (body, step),
        _ => return Err(bad_argument(call.op, "regions are missing", "give body and step")),
    };
    let Some(at) = spec.inputs(call.inputs.len()) else {
        let what = format!("{} inputs are too few", call.inputs.len());
        return Err(bad_argument(call.op, what, "give those of the loop and what goes back"));
    };
    let own = Call { inputs: &call.inputs[at.own.clone()], ..*call };
    let taken = while_loop::taken(&own, &spec.of, body)?;
    let carried = &taken[..spec.of.carried];
    super::check_inputs(call, "body's results", carried, &body.output_types())?;
    if spec.handed {
        let checkpoints: Vec<TensorType> =
            carried.iter().map(|ty| spec.of.checkpoint(ty)).collect();
        super::check_inputs(call, "loop", carried, &call.inputs[at.ends])?;
        let given = &call.inputs[at.checkpoints];
        super::check_inputs(call, "checkpoints", &checkpoints[..given.len()], given)?;
    }
    if let Some(iterations) = at.iterations {
        let count = TensorType::new(DType::I64, ());
        super::check_inputs(
            call,
            "number of iterations",
            &[count],
            &call.inputs[iterations..=iterations],
        )?;
    }
    let mut given: SmallVec<[TensorType; 8]> = taken.iter().chain(carried).cloned().collect();
    for ty in &call.inputs[at.seeds] {
        given.push(row_of(ty).ok_or_else(|| {
            bad_argument(call.op, format!("{ty} has no rows"), "give one row an iteration")
        })?);
    }
    let back = &call.inputs[at.back];
    given.extend(back.iter().cloned());
    super::check_inputs(call, "step", &given, &step.input_types())?;
    let made = step.output_types();
    if made.len() != spec.back.saturating_add(spec.stacked) {
        let what = format!("the step returns {} values", made.len());
        return Err(bad_argument(call.op, what, "return what is carried back, then rows"));
    }
    super::check_inputs(call, "step's results", back, &made[..spec.back])?;
    let mut types: Types = back.iter().cloned().collect();
    match &spec.of.iterations {
        Iterations::Times(n) => {
            types.extend(made[spec.back..].iter().map(|row| stacked(row, n.clone())));
        }
        Iterations::While { .. } if spec.stacked > 0 || spec.seeds > 0 => {
            let what = "rows of a loop whose number of iterations only the data know";
            return Err(bad_argument(call.op, what, "say how many iterations there are"));
        }
        Iterations::While { .. } => {}
    }
    Ok(types)
}

fn cost(call: &Call) -> Cost {
    let Ok(spec) = spec(call) else { return Cost::default() };
    let iteration =
        call.regions.iter().map(|g| super::region_cost(g)).fold(Cost::default(), super::plus);
    super::all_iterations(&spec.of, iteration)
}

/// The body without its stacked rows, for iterations that are recomputed.
pub(super) fn carried_only(body: &Arc<Graph>, spec: &Loop) -> Result<Graph> {
    let mut recomputed = (**body).clone();
    recomputed.outputs.truncate(spec.carried);
    super::without_effects(&mut recomputed)?;
    Ok(recomputed)
}

/// One step back through the body.
pub(super) fn step_graph(
    body: &Graph,
    spec: &Loop,
    flow: &Flow,
    ops: &'static GradOps,
) -> Result<Graph> {
    let wanted: Vec<bool> = flow.carried.iter().chain(&flow.fixed).copied().collect();
    let seeded: Vec<bool> = flow.carried.iter().chain(&flow.stacked).copied().collect();
    let known = vec![true; spec.carried];
    let first_read = spec.sliced_inputs().end;
    let sums: Vec<bool> =
        wanted.iter().enumerate().map(|(i, wanted)| *wanted && i >= first_read).collect();
    let what =
        VjpGraph { seeded: &seeded, outputs: &[], wanted: &wanted, known: &known, sums: &sums };
    let mut step = vjp_graph(body, what, ops)?;
    // It takes gradients of carried values before those of stacked ones; rows come first here, so that what is
    // carried backwards stands together at the end, in the order in which it is returned.
    let count = |flags: &[bool]| flags.iter().filter(|yes| **yes).count();
    let states = count(&flow.carried);
    let first = body.inputs.len() + spec.carried;
    step.inputs[first..first + states + count(&flow.stacked)].rotate_left(states);
    let rows = count(&flow.fixed[..spec.sliced]);
    step.outputs[states..].rotate_left(rows);
    super::without_effects(&mut step)?;
    Ok(step)
}

/// Whether a graph reads a value at all.
pub(super) fn reads(graph: &Graph, id: ValueId) -> bool {
    graph.nodes.iter().any(|n| n.inputs.contains(&id)) || graph.outputs.contains(&id)
}
