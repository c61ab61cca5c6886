//! Views of values whose sizes the data decide, that have a known size themselves: where their elements lie is known as they run, and what reads them is
//! planned before.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Elementwise, Part, Result, Tensor, concat, cond, function, grad, tensor, while_loop,
};

use crate::common::{call_checked, own_context};

type Case = (&'static str, fn(&Tensor) -> Result<Tensor>);

/// Some rows of a table: the first two of three.
fn rows(x: &Tensor) -> Result<Tensor> {
    x.boolean_mask(&x.sum([1])?.less(13.0)?)
}

/// Some columns of it.
fn columns(x: &Tensor) -> Result<Tensor> {
    rows(&x.t()?)?.t()
}

/// Views; a reshape says a size that the data turn out to have.
const VIEWS: [Case; 9] = [
    ("the last row", |x| rows(x)?.slice(&[(-1..).into()])?.reshape([3])),
    ("the last row of a table", |x| rows(x)?.slice(&[(-1..).into()])?.reshape([1, 3])),
    ("the first row", |x| rows(x)?.slice(&[(0..1).into()])?.reshape([3])),
    ("the last element", |x| rows(x)?.slice(&[(-1..).into(), (2..).into()])?.reshape([1])),
    ("the last column", |x| columns(x)?.slice(&[Part::ALL, (-1..).into()])?.reshape([3])),
    ("all columns", |x| columns(x)?.reshape([3, 2])),
    ("rows from the end on", |x| rows(x)?.slice(&[Part::ALL.by(-1)])?.reshape([2, 3])),
    ("all but the first", |x| rows(x)?.slice(&[(1..).into()])?.reshape([1, 3])),
    ("the last of more", |x| concat(&[&rows(x)?, x], 0)?.slice(&[(-1..).into()])?.reshape([3])),
];

/// What reads it: in place of a result, element by element, by a kernel, in a region.
const READERS: [Case; 6] = [
    ("as it is", |v| Ok(v.clone())),
    ("elementwise", |v| (v * 2.0)?.exp()),
    ("reduced", |v| v.sum_all()),
    ("a kernel", |v| v.reshape([-1])?.sort(0, true)),
    ("a branch", |v| {
        cond(
            &tensor(true)?.logical_and(v.sum_all()?.less(1e9)?)?,
            || (v * 3.0)?.sum_all(),
            || v.sum_all(),
        )
    }),
    ("a loop", |v| {
        let body = |(i, s): (Tensor, Tensor)| Ok(((i + 1)?, (s + v.square()?.sum_all()?)?));
        Ok(while_loop((tensor(0i32)?, tensor(0.0f64)?), |(i, _)| i.less(3), body)?.1)
    }),
];

fn x() -> Tensor {
    tensor([[0.5f64, 1.0, 2.0], [2.25, 4.0, 1.5], [7.0, 8.0, 9.0]]).unwrap()
}

#[test]
fn views_of_data_decided_sizes_show_what_they_show_eagerly() {
    let _context = own_context();
    for (view_name, view) in VIEWS {
        for (reader_name, reader) in READERS {
            let f = |x: Tensor| reader(&view(&x)?);
            let of = format!("{view_name}, read {reader_name}");
            let eager = f(x()).unwrap();
            let planned = call_checked(&function(f), &x());
            assert_eq!(planned.shape(), eager.shape(), "{of}");
            let wanted = eager.to_vec::<f64>().unwrap();
            assert_eq!(planned.to_vec::<f64>().unwrap(), wanted, "{of}");
            let slope = grad(move |x: Tensor| reader(&view(&x)?)?.square()?.sum_all());
            let wanted = slope(x()).unwrap().to_vec::<f64>().unwrap();
            let planned = call_checked(&function(slope), &x());
            assert_eq!(planned.to_vec::<f64>().unwrap(), wanted, "the gradient of {of}");
        }
    }
}

#[test]
fn parts_that_were_joined_to_a_data_decided_one_get_their_gradients() {
    let _context = own_context();
    // A gradient of a known size that begins behind one of a size that the data decide.
    let joined =
        |x: Tensor| concat(&[&rows(&x)?, &x, &rows(&x)?, &(&x * 2.0)?], 0)?.square()?.sum_all();
    let wanted = grad(joined)(x()).unwrap().to_vec::<f64>().unwrap();
    let planned = call_checked(&function(grad(joined)), &x());
    assert_eq!(planned.to_vec::<f64>().unwrap(), wanted);
    let kept = |i: usize| if i < 6 { 4.0 } else { 0.0 };
    let by_hand = |(i, x): (usize, f64)| (kept(i) + 2.0 + 8.0) * x;
    let by_hand: Vec<f64> =
        x().to_vec::<f64>().unwrap().into_iter().enumerate().map(by_hand).collect();
    assert_eq!(wanted, by_hand);
}
