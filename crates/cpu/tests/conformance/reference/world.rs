//! Ops between ranks: samples are of a world of one rank, where each gives what it is given. What several ranks give is tested with several
//! processes.

use super::Asked;
use crate::plain::Answer;

pub fn alone(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    vec![Answer::new(x.dtype, x.sizes.clone(), x.values.to_vec())]
}
