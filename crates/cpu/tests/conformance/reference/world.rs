//! Ops between ranks: samples are of a world of one rank, where each gives what it is given. What several ranks give is tested with several
//! processes.

use tonnage_core::Attrs;

use super::Asked;
use crate::plain::Answer;

pub fn alone(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    vec![Answer::new(x.dtype, x.sizes.clone(), x.values.to_vec())]
}

/// The elements of a tensor in the shape that is asked for.
pub fn whole(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let sizes = match asked.attrs {
        Attrs::Blocks { shape, .. } => shape.sizes().unwrap().to_vec(),
        _ => x.sizes.to_vec(),
    };
    vec![Answer::new(x.dtype, sizes, x.values.to_vec())]
}

/// The elements of a tensor, one after another.
pub fn block(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    vec![Answer::new(x.dtype, [x.values.len()], x.values.to_vec())]
}
