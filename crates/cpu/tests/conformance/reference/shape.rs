//! Ops that move elements or make them up.

use tonnage_core::Attrs;
use tonnage_core::attrs::AxisSlice;

use super::{Asked, indices};
use crate::plain::Answer;

/// A result of that shape, each element read from an index of the only input.
fn read(asked: &Asked, sizes: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let values = indices(&sizes).iter().map(|index| x.at(&from(index))).collect();
    vec![Answer::new(x.dtype, sizes, values)]
}

pub fn transpose(asked: &Asked) -> Vec<Answer> {
    let Attrs::Order(order) = asked.attrs else { panic!("no order") };
    let sizes = order.iter().map(|a| asked.inputs[0].sizes[*a]).collect();
    read(asked, sizes, |index| {
        let mut from = vec![0; index.len()];
        for (i, axis) in order.iter().enumerate() {
            from[*axis] = index[i];
        }
        from
    })
}

/// Where an index of a part lies in the whole.
fn inside(slices: &[AxisSlice], index: &[usize]) -> Vec<usize> {
    let place = |(slice, i): (&AxisSlice, &usize)| {
        let start = slice.start.known().expect("known") as isize;
        (start + *i as isize * slice.step) as usize
    };
    slices.iter().zip(index).map(place).collect()
}

pub fn slice(asked: &Asked) -> Vec<Answer> {
    let Attrs::Slices(slices) = asked.attrs else { panic!("no slices") };
    let sizes = slices.iter().map(|s| s.len.known().expect("known")).collect();
    read(asked, sizes, |index| inside(slices, index))
}

pub fn place(asked: &Asked) -> Vec<Answer> {
    let Attrs::Place { slices, shape } = asked.attrs else { panic!("no place") };
    let (x, sizes) = (&asked.inputs[0], shape.sizes().expect("known").to_vec());
    let whole = indices(&sizes);
    let mut values = vec![0.0; whole.len()];
    for index in indices(&x.sizes) {
        let to = inside(slices, &index);
        let at = whole.iter().position(|other| *other == to).expect("inside");
        values[at] = x.at(&index);
    }
    vec![Answer::new(x.dtype, sizes, values)]
}

pub fn reshape(asked: &Asked) -> Vec<Answer> {
    let Attrs::Shape(shape) = asked.attrs else { panic!("no shape") };
    let x = &asked.inputs[0];
    vec![Answer::new(x.dtype, shape.sizes().expect("known").to_vec(), x.values.clone())]
}

pub fn broadcast_to(asked: &Asked) -> Vec<Answer> {
    let Attrs::Shape(shape) = asked.attrs else { panic!("no shape") };
    let (x, sizes) = (&asked.inputs[0], shape.sizes().expect("known").to_vec());
    let values = indices(&sizes).iter().map(|index| x.broadcast(index)).collect();
    vec![Answer::new(x.dtype, sizes, values)]
}

pub fn fill(asked: &Asked) -> Vec<Answer> {
    let Attrs::Fill { value, dtype, shape } = asked.attrs else { panic!("no value") };
    let sizes = shape.sizes().expect("known").to_vec();
    let values = vec![value.to_f64(); sizes.iter().product()];
    vec![Answer::new(*dtype, sizes, values)]
}

pub fn range(asked: &Asked) -> Vec<Answer> {
    let Attrs::Range { start, step, len, dtype } = asked.attrs else { panic!("no range") };
    let len = len.known().expect("known");
    let values = (0..len).map(|i| start.to_f64() + i as f64 * step.to_f64()).collect();
    vec![Answer::new(*dtype, vec![len], values)]
}
