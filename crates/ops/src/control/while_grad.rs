//! `while_grad`: the gradient of `while_loop`, in the memory of a few carried states.
//!
//! Inputs: those of the loop, then gradients of its float results. Regions: the loop's condition and
//! body, and one step back: it takes what the body took, what the body made, gradients of the float
//! values that it made and sums so far, and returns gradients of the float values that it took and the
//! sums with this round added. The executor runs the loop forwards, keeping states in slots, and then
//! backwards, running pieces again from the nearest slot.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Value;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{GradOps, VjpGraph, vjp_graph};
use tonnage_core::graph::{Builder, Graph, replay};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Region, Remat, Sample, Saves, Types, Values,
    no_scratch,
};
use tonnage_core::{Kind, OpDef, TensorType};

use crate::{emit, rules};

/// The gradient of a loop.
pub static WHILE_GRAD: OpDef = OpDef {
    name: "while_grad",
    doc: "The gradient of a loop, in the memory of a few carried states.",
    infer,
    axes: |call| {
        let ranks: Vec<usize> = infer(call)
            .map_or(Vec::new(), |types| types.iter().map(|ty| ty.shape.rank()).collect());
        rules::axes::mixed(&ranks)
    },
    mem: Mem::Regions,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| call.regions.iter().map(|g| super::region_cost(g)).fold(Cost::default(), sum),
    grad: Grad::Stop(
        "second derivatives through a loop: unroll it, or use forward mode over its gradient",
    ),
    jvp: Jvp::Stop("second derivatives through a loop: unroll it"),
    fails: Fails::Never,
    lower: Lower::Region(Region::LoopGrad),
    samples,
};

fn sum(a: Cost, b: Cost) -> Cost {
    Cost { flops: a.flops.saturating_add(b.flops), bytes: a.bytes.saturating_add(b.bytes) }
}

fn infer(call: &Call) -> Result<Types> {
    let Attrs::LoopGrad { carried, active, wanted, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let [condition, body, step] = call.regions else {
        return Err(bad_argument(call.op, "not three regions", "give condition, body and step"));
    };
    if active.len() != *carried {
        let what = format!("{} flags for {carried} carried values", active.len());
        return Err(bad_argument(call.op, what, "say of each whether it has a gradient"));
    }
    let of_loop = carried + wanted.len();
    let seeds = active.iter().filter(|a| **a).count();
    rules::infer::count(call, of_loop + seeds)?;
    super::check_inputs(call, "condition", &call.inputs[..of_loop], &condition.input_types())?;
    super::check_inputs(call, "body", &call.inputs[..of_loop], &body.input_types())?;
    let flags = active.iter().chain(wanted);
    let made: Types = call.inputs[..of_loop]
        .iter()
        .zip(flags)
        .filter(|(_, yes)| **yes)
        .map(|(ty, _)| ty.clone())
        .collect();
    let mut taken: SmallVec<[TensorType; 8]> = call.inputs[..of_loop].into();
    taken.extend(body.output_types());
    taken.extend(made.iter().cloned());
    super::check_inputs(call, "step", &taken, &step.input_types())?;
    Ok(made)
}

/// One step back through the body.
pub(super) fn step_graph(
    body: &Graph,
    carried: usize,
    active: &[bool],
    wanted: &[bool],
    ops: &'static GradOps,
) -> Result<Graph> {
    let flags: Vec<bool> = active.iter().chain(wanted).copied().collect();
    let what = VjpGraph { seeded: active, wanted: &flags, outputs_known: true };
    let back = vjp_graph(body, what, ops)?;
    let mut builder = Builder::new();
    let mut inputs: Vec<Value> = back
        .inputs
        .iter()
        .map(|id| builder.input(back.ty(*id).clone(), back.value(*id).kind, None))
        .collect();
    let sums: Vec<Value> = body.inputs[carried..]
        .iter()
        .zip(wanted)
        .filter(|(_, w)| **w)
        .map(|(id, _)| builder.input(body.ty(*id).clone(), Kind::Gradient, None))
        .collect();
    let mut made = replay(&back, std::mem::take(&mut inputs), &mut builder)?;
    let states = active.iter().filter(|a| **a).count();
    let added = made.split_off(states);
    for (sum, round) in sums.into_iter().zip(added) {
        made.push(emit::add(&mut builder, sum, round)?);
    }
    builder.finish(&made)
}

fn samples() -> Vec<Sample> {
    let made = || -> Result<Sample> {
        let (mut types, [condition, body]) = super::while_loop::sample_regions()?;
        let (active, wanted) = (vec![false, true], vec![true]);
        let step = step_graph(&body, 2, &active, &wanted, &crate::GRAD_OPS)?;
        types.push(types[1].clone());
        let attrs = Attrs::LoopGrad { carried: 2, slots: None, active, wanted, most: None };
        let mut sample = Sample::of(&types, attrs).with(0, Values::Below(1));
        sample.regions = vec![condition, body, Arc::new(step)];
        Ok(sample)
    };
    made().into_iter().collect()
}
