//! Tangents against central differences in f64, in a random direction: whatever the row says of forward mode,
//! for every choice of inputs that move.

use tonnage_core::grad::{JvpCall, jvp_graph, push_forward};
use tonnage_core::row::{Grad, Jvp, OpDef, Sample};
use tonnage_core::{ErrorKind, Value};
use tonnage_ops::GRAD_OPS;

use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;
use crate::gradients::{Case, agree, case, choices, directions, dot, graph_of, slopes};
use crate::plain::Plain;

/// The results and their tangents, by what the row says.
fn by_row(
    op: &'static OpDef,
    case: &Case,
    directions: &[Option<Plain>],
    in_place: bool,
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>), String> {
    let text = |e: tonnage_core::Error| e.to_string();
    let value = |x: &Plain| Tensor::from_plain(x).value();
    let inputs: Vec<Value> = case.inputs.iter().map(value).collect();
    let tangents: Vec<Option<Value>> = directions.iter().map(|d| d.as_ref().map(value)).collect();
    let call = JvpCall {
        op,
        inputs: &inputs,
        outputs: &[],
        attrs: &case.sample.attrs,
        regions: &case.sample.regions,
        tangents: &tangents,
        ops: &GRAD_OPS,
    };
    let mut engine = Engine::on(&tonnage_cpu::workers::Alone, in_place);
    let dual = push_forward(&mut engine, &call, false).map_err(text)?;
    let mut resident = |v: Value| engine.resident(Tensor::of(v)).map_err(text);
    let outputs = dual.outputs.into_iter().map(&mut resident).collect::<Result<Vec<_>, _>>()?;
    let tangents = dual
        .tangents
        .into_iter()
        .map(|t| t.map(&mut resident).transpose())
        .collect::<Result<Vec<_>, _>>()?;
    Ok((outputs, tangents))
}

/// Compares tangents with the slope of `seeds . f`.
fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let Some(case) = case(op, sample, random)? else { return Ok(()) };
    if let Jvp::Stop(_) = op.jvp {
        return match op.grad {
            Grad::Rule(_) => Err("a row with a backward rule has none forwards".into()),
            Grad::Stop(_) => Ok(()),
        };
    }
    let f = |inputs: &[Plain]| case.run(op, inputs);
    for needs in choices(&case.inputs) {
        let directions = directions(random, &case, &needs);
        let slopes = match op.name {
            "stop_gradient" => [0.0; 2],
            _ => slopes(&f, &case.inputs, &directions, &case.seeds)?,
        };
        for in_place in [false, true] {
            let (outputs, tangents) = by_row(op, &case, &directions, in_place)?;
            for ((output, made), tangent) in outputs.iter().zip(&case.made).zip(&tangents) {
                if output.bits() != made.bits() {
                    return Err("tangents change the results".into());
                }
                if let Some(tangent) = tangent
                    && tangent.ty() != output.ty()
                {
                    return Err(format!("the tangent of {} is {}", output.ty(), tangent.ty()));
                }
            }
            let tangents: Vec<Option<Plain>> =
                tangents.iter().map(|t| t.as_ref().map(Tensor::plain)).collect();
            agree(&tangents, &case.seeds, slopes).map_err(|e| format!("{needs:?}: {e}"))?;
        }
    }
    Ok(())
}

#[test]
fn tangents_agree_with_differences() {
    for_every_sample(check);
}

/// A graph of values and tangents is a graph like any other: it can be differentiated forwards again.
fn check_twice(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let Some(case) = case(op, sample, random)? else { return Ok(()) };
    let text = |e: tonnage_core::Error| e.to_string();
    let graph = graph_of(op, &case.sample).map_err(text)?;
    let float = |types: Vec<tonnage_core::TensorType>| -> Vec<bool> {
        types.iter().map(|ty| ty.dtype.is_float()).collect()
    };
    let (active, wanted) = (float(graph.input_types()), float(graph.output_types()));
    let once = match jvp_graph(&graph, &active, &wanted, &GRAD_OPS) {
        Err(e) if matches!(e.kind(), ErrorKind::NoGradient { .. }) => return Ok(()),
        other => other.map_err(text)?,
    };
    once.verify().map_err(text)?;
    let moving = float(once.input_types());
    let all: Vec<bool> = float(once.output_types());
    let twice = match jvp_graph(&once, &moving, &all, &GRAD_OPS) {
        Err(e) if matches!(e.kind(), ErrorKind::NoGradient { .. }) => return Ok(()),
        other => other.map_err(text)?,
    };
    twice.verify().map_err(text)?;
    let replay = |graph: &tonnage_core::Graph, inputs: &[Plain]| -> Result<Vec<Plain>, String> {
        let tensors = inputs.iter().map(Tensor::from_plain).collect();
        let made = Engine::plain().replay(graph, tensors).map_err(text)?;
        Ok(made.iter().map(Tensor::plain).collect())
    };
    let first = directions(random, &case, &active);
    let inputs: Vec<Plain> = case.inputs.iter().chain(first.iter().flatten()).cloned().collect();
    // The second direction moves the inputs; the first stays what it was.
    let mut second = directions(random, &case, &active);
    second.extend(first.iter().flatten().map(|d| Some(Plain::zeros(&d.ty()))));
    let results = replay(&once, &inputs)?;
    let seeds: Vec<Option<Plain>> = results
        .iter()
        .enumerate()
        .map(|(i, r)| all[i].then(|| crate::gradients::noise(random, r)))
        .collect();
    // Its tangent is zero by decree.
    let slopes = match op.name {
        "stop_gradient" => [0.0; 2],
        _ => slopes(&|x| replay(&once, x), &inputs, &second, &seeds)?,
    };
    let given: Vec<Plain> = inputs.iter().chain(second.iter().flatten()).cloned().collect();
    let made = replay(&twice, &given)?;
    let ends = &made[results.len()..];
    let sum: f64 = ends.iter().zip(seeds.iter().flatten()).map(|(t, s)| dot(t, s)).sum();
    if ends.len() != seeds.iter().flatten().count() || !sum.is_finite() {
        return Err(format!("{} tangents, {sum}", ends.len()));
    }
    let ends: Vec<Option<Plain>> = ends.iter().cloned().map(Some).collect();
    let seeds: Vec<Option<Plain>> = seeds.into_iter().flatten().map(Some).collect();
    agree(&ends, &seeds, slopes)
}

#[test]
fn tangents_of_tangents_agree_with_differences() {
    for_every_sample(check_twice);
}
