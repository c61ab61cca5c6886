//! Control flow, over graphs that the references run.

use tonnage_core::looping::{Iterations, Loop};
use tonnage_core::{Attrs, DType};

use super::{Asked, run_graph};
use crate::plain::{Answer, Plain};

fn answers(values: Vec<Plain>) -> Vec<Answer> {
    values.into_iter().map(|x| Answer::new(x.dtype, x.sizes, x.values)).collect()
}

/// What the graph gives.
pub fn call(asked: &Asked) -> Vec<Answer> {
    answers(run_graph(&asked.regions[0], asked.inputs))
}

/// True is the first, false the second; of numbers, any that no branch has is the last.
pub fn branch(asked: &Asked) -> Vec<Answer> {
    let choice = asked.inputs[0].values[0];
    let branch = match asked.inputs[0].dtype {
        DType::Bool => 1 - choice as usize,
        _ => (0..asked.regions.len() - 1)
            .find(|i| *i as f64 == choice)
            .unwrap_or(asked.regions.len() - 1),
    };
    answers(run_graph(&asked.regions[branch], &asked.inputs[1..]))
}

/// Element `at` of the first axis.
fn row(whole: &Plain, at: usize) -> Plain {
    let sizes = whole.sizes[1..].to_vec();
    let count: usize = sizes.iter().product();
    let values = whole.values[at * count..(at + 1) * count].to_vec();
    Plain { dtype: whole.dtype, sizes, values }
}

/// What is carried at the end, and the rows that every iteration gave.
fn run_loop(asked: &Asked, inputs: &[Plain], spec: &Loop) -> (Vec<Plain>, Vec<Vec<Plain>>) {
    let has_condition = matches!(spec.iterations, Iterations::While { .. });
    let body = &asked.regions[usize::from(has_condition)];
    let limit = match &spec.iterations {
        Iterations::While { most } => most.map_or(usize::MAX, |n| n as usize),
        Iterations::Times(n) => n.known().expect("a number"),
    };
    let mut now = inputs[..spec.carried].to_vec();
    let fixed = &inputs[spec.carried + spec.sliced..];
    let mut rows = Vec::new();
    for iteration in 0..limit {
        if has_condition
            && run_graph(&asked.regions[0], &[&now[..], fixed].concat())[0].values[0] == 0.0
        {
            break;
        }
        let at = if spec.reverse { limit - 1 - iteration } else { iteration };
        let sliced = inputs[spec.carried..spec.carried + spec.sliced].iter();
        let mut taken = now.clone();
        taken.extend(sliced.map(|whole| row(whole, at)));
        taken.extend_from_slice(fixed);
        let mut made = run_graph(body, &taken);
        rows.push(made.split_off(spec.carried));
        now = made;
    }
    if spec.reverse {
        rows.reverse();
    }
    (now, rows)
}

pub fn while_loop(asked: &Asked) -> Vec<Answer> {
    let Attrs::Loop(spec) = asked.attrs else { panic!("no loop") };
    let (mut made, rows) = run_loop(asked, asked.inputs, spec);
    let body = asked.regions.last().expect("a body");
    for (k, ty) in body.output_types()[spec.carried..].iter().enumerate() {
        let own = ty.shape.sizes().expect("known sizes");
        let sizes: Vec<usize> = std::iter::once(rows.len()).chain(own.iter().copied()).collect();
        let values = rows.iter().flat_map(|row| row[k].values.clone()).collect();
        made.push(Plain { dtype: ty.dtype, sizes, values });
    }
    answers(made)
}

/// The step back, applied to states that were all saved. Whether it is the gradient is for the tests of
/// gradients to say, which compare it with differences.
pub fn while_grad(asked: &Asked) -> Vec<Answer> {
    let Attrs::LoopGrad(spec) = asked.attrs else { panic!("no gradient of a loop") };
    let at = spec.inputs(asked.inputs.len()).expect("enough inputs");
    let own = &asked.inputs[at.own];
    let step = asked.regions.last().expect("a step");
    let iterations = run_loop(asked, own, &spec.of).1.len();
    let states: Vec<Vec<Plain>> = (0..=iterations)
        .map(|n| {
            // This many iterations and no more; sliced rows are found from the end where they are taken so.
            let mut fewer = spec.of.clone();
            let mut own = own.to_vec();
            match &mut fewer.iterations {
                Iterations::While { most } => *most = Some(n as u64),
                Iterations::Times(times) => {
                    *times = n.into();
                    for whole in &mut own[spec.of.sliced_inputs()] {
                        let first = if spec.of.reverse { iterations - n } else { 0 };
                        let count: usize = whole.sizes[1..].iter().product();
                        whole.values = whole.values[first * count..(first + n) * count].to_vec();
                        whole.sizes[0] = n;
                    }
                }
            }
            run_loop(asked, &own, &fewer).0
        })
        .collect();
    let mut back = asked.inputs[at.back].to_vec();
    let mut rows = Vec::new();
    for n in (0..iterations).rev() {
        let place = if spec.of.reverse { iterations - 1 - n } else { n };
        let mut taken = states[n].clone();
        taken.extend(own[spec.of.sliced_inputs()].iter().map(|whole| row(whole, place)));
        taken.extend_from_slice(&own[spec.of.sliced_inputs().end..]);
        taken.extend_from_slice(&states[n + 1]);
        taken.extend(asked.inputs[at.seeds.clone()].iter().map(|whole| row(whole, place)));
        taken.extend(back);
        back = run_graph(step, &taken);
        rows.push(back.split_off(spec.back));
    }
    if !spec.of.reverse {
        rows.reverse();
    }
    for (k, ty) in step.output_types()[spec.back..].iter().enumerate() {
        let own = ty.shape.sizes().expect("known sizes");
        let sizes: Vec<usize> = std::iter::once(iterations).chain(own.iter().copied()).collect();
        let values = rows.iter().flat_map(|row| row[k].values.clone()).collect();
        back.push(Plain { dtype: ty.dtype, sizes, values });
    }
    // A slope such as `1 - y * y` cancels where y is near 1: errors are those of numbers around 1.
    back.into_iter()
        .map(|x| {
            let scale = vec![1.0; x.values.len()];
            Answer::scaled(x.dtype, x.sizes, x.values, scale)
        })
        .collect()
}
