//! Closures of the program around: those of the samples.

use super::Asked;
use crate::plain::Answer;

pub fn nothing(_: &Asked) -> Vec<Answer> {
    Vec::new()
}

pub fn twice(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let values = x.values.iter().map(|v| 2.0 * v).collect();
    vec![Answer::new(x.dtype, x.sizes.clone(), values)]
}
