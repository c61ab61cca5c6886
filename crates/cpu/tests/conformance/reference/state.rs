//! Updates of variables.

use super::{Asked, indices};
use crate::plain::Answer;

fn update(asked: &Asked, f: impl Fn(f64, f64) -> f64) -> Vec<Answer> {
    let (variable, value) = (&asked.inputs[0], &asked.inputs[1]);
    let all = indices(&variable.sizes);
    let values = all.iter().map(|i| f(variable.at(i), value.broadcast(i))).collect();
    vec![Answer::new(variable.dtype, variable.sizes.clone(), values)]
}

pub fn assign(asked: &Asked) -> Vec<Answer> {
    update(asked, |_, value| value)
}

pub fn assign_add(asked: &Asked) -> Vec<Answer> {
    update(asked, |variable, value| variable + value)
}

pub fn assign_sub(asked: &Asked) -> Vec<Answer> {
    update(asked, |variable, value| variable - value)
}
