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

/// The elements of a window, padding included, row by row: where each lies in the image, if it does.
fn window(asked: &Asked, image: &[usize], index: &[usize]) -> Vec<Option<Vec<usize>>> {
    let Attrs::Window { size, stride, padding } = *asked.attrs else { panic!("no window") };
    let places = (0..size[0]).flat_map(|i| (0..size[1]).map(move |j| (i, j)));
    let inside = |(i, j): (usize, usize)| {
        let row = (index[1] * stride[0] + i).checked_sub(padding[0][0])?;
        let col = (index[2] * stride[1] + j).checked_sub(padding[1][0])?;
        (row < image[1] && col < image[2]).then(|| vec![index[0], row, col, index[3]])
    };
    places.map(inside).collect()
}

/// The largest under a window that slides over `[batch, height, width, channels]`; padding never wins.
pub fn max_pool(asked: &Asked) -> Vec<Answer> {
    let Attrs::Window { size, stride, padding } = *asked.attrs else { panic!("no window") };
    let x = &asked.inputs[0];
    let length =
        |d: usize| (x.sizes[d + 1] + padding[d][0] + padding[d][1] - size[d]) / stride[d] + 1;
    let sizes = vec![x.sizes[0], length(0), length(1), x.sizes[3]];
    let value = |index: &Vec<usize>| {
        let all = window(asked, &x.sizes, index).into_iter().flatten().map(|at| x.at(&at));
        all.reduce(|a, b| if a.is_nan() || a >= b { a } else { b }).expect("an element")
    };
    vec![Answer::new(x.dtype, sizes.clone(), indices(&sizes).iter().map(value).collect())]
}

/// An image with a value of every window added to the element that has the window's number.
pub fn max_pool_grad(asked: &Asked) -> Vec<Answer> {
    let [into, numbers, g] = asked.inputs else { panic!("three inputs") };
    let mut values = into.values.clone();
    let mut scale: Vec<f64> = values.iter().map(|x| x.abs()).collect();
    for index in indices(&g.sizes) {
        let places = window(asked, &into.sizes, &index);
        if let Some(at) = &places[numbers.at(&index) as usize] {
            let at = at.iter().zip(&into.sizes).fold(0, |at, (i, n)| at * n + i);
            values[at] += g.at(&index);
            scale[at] += g.at(&index).abs();
        }
    }
    vec![Answer::scaled(into.dtype, into.sizes.clone(), values, scale)]
}

/// The element of every window that has its number; 0 in padding.
pub fn max_pool_pick(asked: &Asked) -> Vec<Answer> {
    let (x, numbers) = (&asked.inputs[0], &asked.inputs[1]);
    let value = |index: &Vec<usize>| {
        let places = window(asked, &x.sizes, index);
        places[numbers.at(index) as usize].as_ref().map_or(0.0, |at| x.at(at))
    };
    let values = indices(&numbers.sizes).iter().map(value).collect();
    vec![Answer::new(x.dtype, numbers.sizes.clone(), values)]
}
