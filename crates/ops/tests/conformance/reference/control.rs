//! Control flow, over graphs that the references run.

use tonnage_core::Attrs;

use super::{Asked, run_graph};
use crate::plain::{Answer, Plain};

fn answers(values: Vec<Plain>) -> Vec<Answer> {
    values.into_iter().map(|x| Answer::new(x.dtype, x.sizes, x.values)).collect()
}

pub fn call(asked: &Asked) -> Vec<Answer> {
    answers(run_graph(&asked.regions[0], asked.inputs))
}

pub fn cond(asked: &Asked) -> Vec<Answer> {
    let branch = if asked.inputs[0].values[0] != 0.0 { 0 } else { 1 };
    answers(run_graph(&asked.regions[branch], &asked.inputs[1..]))
}

fn run_loop(asked: &Asked, inputs: &[Plain], carried: usize, most: Option<u64>) -> Vec<Plain> {
    let mut now = inputs.to_vec();
    for round in 0.. {
        let goes_on = run_graph(&asked.regions[0], &now)[0].values[0] != 0.0;
        if !goes_on || most == Some(round) {
            break;
        }
        let next = run_graph(&asked.regions[1], &now);
        now.splice(..carried, next);
    }
    now.truncate(carried);
    now
}

pub fn while_loop(asked: &Asked) -> Vec<Answer> {
    let Attrs::Loop { carried, most } = *asked.attrs else { panic!("no loop") };
    answers(run_loop(asked, asked.inputs, carried, most))
}

/// By differences of the loop itself, one input element at a time. They are good to about nine digits.
pub fn while_grad(asked: &Asked) -> Vec<Answer> {
    let Attrs::LoopGrad { carried, active, wanted, most, .. } = asked.attrs else {
        panic!("no loop")
    };
    let (inputs, seeds) = asked.inputs.split_at(carried + wanted.len());
    let score = |inputs: &[Plain]| -> f64 {
        let made = run_loop(asked, inputs, *carried, *most);
        let made = made.iter().zip(active).filter(|(_, a)| **a).map(|(x, _)| x);
        let dot = |(x, seed): (&Plain, &Plain)| -> f64 {
            x.values.iter().zip(&seed.values).map(|(a, b)| a * b).sum()
        };
        made.zip(seeds).map(dot).sum()
    };
    let mut all = Vec::new();
    for (i, _) in active.iter().chain(wanted).enumerate().filter(|(_, yes)| **yes) {
        let slope = |at: usize| {
            let step = 1e-6;
            let [up, down] = [step, -step].map(|step| {
                let mut moved = inputs.to_vec();
                moved[i].values[at] += step;
                score(&moved)
            });
            (up - down) / (2.0 * step)
        };
        let values = (0..inputs[i].values.len()).map(slope).collect();
        let scale = vec![1.0; inputs[i].values.len()];
        all.push(Answer::scaled(inputs[i].dtype, inputs[i].sizes.clone(), values, scale));
    }
    all
}
