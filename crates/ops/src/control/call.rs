//! `call`: a graph as one op. It runs where it stands: the planner writes it out, after it has looked for
//! values that are computed twice.
//!
//! Its gradient saves the inputs and nothing else, and recomputes whatever the rules inside of it
//! read: a function that is checkpointed is such a call. The backward pass is a call too, so what it
//! recomputes is never merged with what was computed before.
//!
//! Decision: `docs/decisions/checkpointed-functions-are-calls.md`.

use std::sync::Arc;

use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{
    Cotangent, GradCall, JvpCall, VjpGraph, assemble, jvp_graph, reached, vjp_parts,
};
use tonnage_core::graph::{Builder, Graph, replay};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Attrs, DType, Kind, OpDef, TensorType};

use crate::{OpId, emit, math};

/// A graph as one op.
pub static CALL: OpDef = OpDef {
    id: OpId::Call as u16,
    name: "call",
    doc: "A graph as one op; its gradient saves the inputs and recomputes the rest.",
    infer,
    axes: |call| super::mixed_axes(infer, call),
    mem: Mem::Regions,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| call.regions.first().map_or(Cost::default(), |g| super::region_cost(g)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Together(jvp),
    fails: Fails::Never,
    lower: Lower::Composite(expand),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [body] = call.regions else {
        return Err(bad_argument(call.op, "not one graph", "give the graph that it stands for"));
    };
    super::check_inputs(call, "graph", call.inputs, &body.input_types())?;
    Ok(body.result_types().into_iter().collect())
}

pub(super) fn expand(e: &mut dyn Emit, call: &Call, inputs: Vec<Value>) -> Result<Vec<Value>> {
    replay(&call.regions[0], inputs, e)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    let seeds: Vec<Option<Value>> = call.grads.to_vec();
    gradient(e, &call.regions[0], inputs, seeds, call.needs, call)
}

/// Gradients of a graph's inputs, by a call that recomputes what it needs of the graph.
pub(super) fn gradient(
    e: &mut dyn Emit,
    body: &Graph,
    mut inputs: Vec<Value>,
    seeds: Vec<Option<Value>>,
    wanted: &[bool],
    call: &GradCall,
) -> Result<Vec<Option<Cotangent>>> {
    let seeded: Vec<bool> = seeds.iter().map(Option::is_some).collect();
    let what = VjpGraph { seeded: &seeded, outputs: call.outputs, wanted, known: &[], sums: &[] };
    let (mut back, returned) = vjp_parts(body, what, call.ops)?;
    super::without_effects(&mut back)?;
    inputs.extend(seeds.into_iter().flatten());
    let made = e.emit(&CALL, inputs, Attrs::None, vec![Arc::new(back)], false)?;
    let asked: Vec<TensorType> = call
        .inputs
        .iter()
        .zip(wanted)
        .filter(|(_, wanted)| **wanted)
        .map(|(ty, _)| ty.clone())
        .collect();
    let mut grads = assemble(&returned, &asked, made)?.into_iter();
    Ok(wanted.iter().map(|w| if *w { grads.next().flatten() } else { None }).collect())
}

fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<(Vec<Value>, Vec<Option<Value>>)> {
    let body = &call.regions[0];
    let active: Vec<bool> = call.tangents.iter().map(Option::is_some).collect();
    let wanted = reached(body, &active);
    let both = jvp_graph(body, &active, &wanted, call.ops)?;
    let inputs = call.inputs.iter().chain(call.tangents.iter().flatten()).cloned().collect();
    let mut made = e.emit(&CALL, inputs, Attrs::None, vec![Arc::new(both)], false)?;
    let mut tangents = made.split_off(wanted.len()).into_iter();
    let tangents = wanted.iter().map(|w| if *w { tangents.next() } else { None }).collect();
    Ok((made, tangents))
}

/// `(x, y) -> (tanh(x * y), x + y)`
pub(super) fn sample_body() -> Result<(Vec<TensorType>, Arc<Graph>)> {
    let types = vec![TensorType::new(DType::F32, [2, 3]), TensorType::new(DType::F32, [3])];
    let mut builder = Builder::new();
    let inputs: Vec<Value> =
        types.iter().map(|ty| builder.input(ty.clone(), Kind::Activation, None)).collect();
    let product = emit::mul(&mut builder, inputs[0].clone(), inputs[1].clone())?;
    let curve = emit::unary(&mut builder, &math::tanh::TANH, product)?;
    let sum = emit::add(&mut builder, inputs[0].clone(), inputs[1].clone())?;
    Ok((types, Arc::new(builder.finish(&[curve, sum])?)))
}

fn samples() -> Vec<Sample> {
    let Ok((types, body)) = sample_body() else { return Vec::new() };
    let mut sample = Sample::of(&types, Attrs::None);
    sample.regions = vec![body];
    vec![sample]
}
