//! What networks are made of, but for convolutions and pooling.

use tonnage_core::Attrs;

use super::{Asked, indices};
use crate::plain::Answer;

pub fn softmax(asked: &Asked) -> Vec<Answer> {
    let Attrs::Axis(axis) = *asked.attrs else { panic!("no axis") };
    let x = &asked.inputs[0];
    let row = |index: &Vec<usize>| -> Vec<f64> {
        let at = |i: usize| [&index[..axis], &[i], &index[axis + 1..]].concat();
        (0..x.sizes[axis]).map(|i| x.at(&at(i))).collect()
    };
    let value = |index: &Vec<usize>| {
        let row = row(index);
        let largest =
            row.iter().fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || a > *b { a } else { *b });
        let total: f64 = row.iter().map(|x| (x - largest).exp()).sum();
        (x.at(index) - largest).exp() / total
    };
    vec![Answer::new(x.dtype, x.sizes.clone(), indices(&x.sizes).iter().map(value).collect())]
}
