//! Neural networks.

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

/// The largest under a window that slides over `[batch, height, width, channels]`; padding never wins.
pub fn max_pool(asked: &Asked) -> Vec<Answer> {
    let Attrs::Window { size, stride, padding } = *asked.attrs else { panic!("no window") };
    let x = &asked.inputs[0];
    let length =
        |d: usize| (x.sizes[d + 1] + padding[d][0] + padding[d][1] - size[d]) / stride[d] + 1;
    let sizes = vec![x.sizes[0], length(0), length(1), x.sizes[3]];
    let value = |index: &Vec<usize>| {
        let mut largest = f64::NEG_INFINITY;
        for (i, j) in (0..size[0]).flat_map(|i| (0..size[1]).map(move |j| (i, j))) {
            let row = (index[1] * stride[0] + i).checked_sub(padding[0][0]);
            let col = (index[2] * stride[1] + j).checked_sub(padding[1][0]);
            let (Some(row), Some(col)) = (row, col) else { continue };
            if row < x.sizes[1] && col < x.sizes[2] {
                let here = x.at(&[index[0], row, col, index[3]]);
                largest = if largest.is_nan() || largest > here { largest } else { here };
            }
        }
        largest
    };
    vec![Answer::new(x.dtype, sizes.clone(), indices(&sizes).iter().map(value).collect())]
}
