//! Loops to test with: one that a counter ends, and ones of a known number of iterations, with rows.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Value;
use tonnage_core::error::Result;
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::looping::{Iterations, Loop, LoopGrad, row_of, stacked};
use tonnage_core::recipe::Key;
use tonnage_core::row::{Sample, Values};
use tonnage_core::{DType, Dim, Kind, TensorType};

use super::{flow, while_grad};
use crate::{emit, math};

/// A loop, and the types of its inputs.
struct Example {
    types: Vec<TensorType>,
    spec: Loop,
    regions: Vec<Arc<Graph>>,
}

fn open(builder: &mut Builder, types: &[TensorType]) -> Vec<Value> {
    types.iter().map(|ty| builder.input(ty.clone(), Kind::Activation, None)).collect()
}

fn spec(carried: usize, sliced: usize, stacked: usize, iterations: Iterations) -> Loop {
    let key = Key::Fixed([1, 2]);
    let (reverse, max_checkpoints, spills, updates) = (false, None, false, Vec::new());
    Loop { carried, sliced, stacked, iterations, reverse, max_checkpoints, spills, key, updates }
}

/// `h = tanh(h * w)` three times, as a counter says.
fn counted() -> Result<Example> {
    let (count, state) = (TensorType::new(DType::I32, ()), TensorType::new(DType::F32, [2, 3]));
    let types = vec![count, state.clone(), state];
    let mut builder = Builder::new();
    let inputs = open(&mut builder, &types);
    let three = emit::number(&mut builder, 3, DType::I32)?;
    let less = emit::binary(&mut builder, &math::comparison::LESS, inputs[0].clone(), three)?;
    let condition = Arc::new(builder.finish(&[less])?);
    let mut builder = Builder::new();
    let inputs = open(&mut builder, &types);
    let one = emit::number(&mut builder, 1, DType::I32)?;
    let next = emit::add(&mut builder, inputs[0].clone(), one)?;
    let product = emit::mul(&mut builder, inputs[1].clone(), inputs[2].clone())?;
    let state = emit::unary(&mut builder, &math::tanh::TANH, product)?;
    let body = Arc::new(builder.finish(&[next, state])?);
    let iterations = Iterations::While { most: Some(5) };
    Ok(Example { types, spec: spec(2, 0, 0, iterations), regions: vec![condition, body] })
}

/// `h = tanh(h * w + x[i])`, `y[i] = h * x[i]`.
fn rows(iterations: usize, reverse: bool) -> Result<Example> {
    let state = TensorType::new(DType::F32, [2, 3]);
    let row = TensorType::new(DType::F32, [3]);
    let types = vec![state.clone(), stacked(&row, Dim::from(iterations)), state.clone()];
    let mut builder = Builder::new();
    let taken = [state.clone(), row_of(&types[1]).unwrap_or(row), state];
    let inputs = open(&mut builder, &taken);
    let product = emit::mul(&mut builder, inputs[0].clone(), inputs[2].clone())?;
    let sum = emit::add(&mut builder, product, inputs[1].clone())?;
    let next = emit::unary(&mut builder, &math::tanh::TANH, sum)?;
    let made = emit::mul(&mut builder, next.clone(), inputs[1].clone())?;
    let body = Arc::new(builder.finish(&[next, made])?);
    let spec = Loop { reverse, ..spec(1, 1, 1, Iterations::Times(Dim::from(iterations))) };
    Ok(Example { types, spec, regions: vec![body] })
}

fn examples() -> impl Iterator<Item = Example> {
    let all = [counted(), rows(3, false), rows(2, true), rows(0, false)];
    all.into_iter().flatten()
}

fn sample(example: &Example, attrs: Attrs, types: &[TensorType]) -> Sample {
    let sample = Sample::of(types, attrs);
    match example.spec.has_condition() {
        true => sample.with(0, Values::Below(1)),
        false => sample,
    }
}

pub(super) fn loops() -> Vec<Sample> {
    let of = |example: Example| {
        let attrs = Attrs::Loop(Box::new(example.spec.clone()));
        let mut sample = sample(&example, attrs, &example.types);
        sample.regions = example.regions;
        sample
    };
    examples().map(of).collect()
}

/// Gradients of everything, by loops that are run once more from the start.
fn gradient(example: Example) -> Result<Sample> {
    let spec = &example.spec;
    let first = usize::from(spec.has_condition());
    let (condition, body) = (&example.regions[..first], &example.regions[first]);
    let needs: Vec<bool> = example.types.iter().map(|ty| ty.dtype.is_float()).collect();
    let seeded: Vec<bool> = body.output_types().iter().map(|ty| ty.dtype.is_float()).collect();
    let flow = flow::of(body, spec, &needs, &seeded);
    let step = while_grad::step_graph(body, spec, &flow, &crate::GRAD_OPS)?;
    let count = |flags: &[bool]| flags.iter().filter(|yes| **yes).count();
    let (sliced, read) = flow.fixed.split_at(spec.sliced);
    let attrs = LoopGrad {
        of: Loop { stacked: 0, ..spec.clone() },
        handed: false,
        seeds: count(&flow.stacked),
        back: count(&flow.carried) + count(read),
        stacked: count(sliced),
    };
    let mut types = example.types.clone();
    if let Iterations::Times(n) = &spec.iterations {
        let made = body.output_types();
        types.extend(made[spec.carried..].iter().map(|row| stacked(row, n.clone())));
    }
    let active = example.types.iter().zip(&flow.carried).filter(|(_, yes)| **yes);
    types.extend(active.map(|(ty, _)| ty.clone()));
    let fixed = example.types[spec.sliced_inputs().end..].iter().zip(read);
    types.extend(fixed.filter(|(_, yes)| **yes).map(|(ty, _)| ty.clone()));
    let mut sample = sample(&example, Attrs::LoopGrad(Box::new(attrs)), &types);
    sample.regions = condition.to_vec();
    sample.regions.push(Arc::new(while_grad::carried_only(body, spec)?));
    sample.regions.push(Arc::new(step));
    Ok(sample)
}

pub(super) fn gradients() -> Vec<Sample> {
    examples().flat_map(gradient).collect()
}
