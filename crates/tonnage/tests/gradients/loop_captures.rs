//! Gradients of loops that read a value whose size the data decide.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{Elementwise, Result, Tensor, fori_loop, function, grad, scan, tensor, while_loop};

use crate::common::{call_checked, own_context};

type Case = (&'static str, fn(Tensor) -> Result<Tensor>);

fn masked(x: &Tensor) -> Result<Tensor> {
    x.boolean_mask(&tensor(0.0f64)?.less(x)?)
}

/// Loops of a known length and of one that the data end, which read such a value in their own ways.
const CASES: [Case; 5] = [
    ("a sum", |x| {
        let v = masked(&x)?;
        fori_loop(0, 3, tensor(0.0f64)?, |_, s: Tensor| s + (&v).square()?.sum_all()?)
    }),
    ("a product with what is carried", |x| {
        let v = masked(&x)?;
        fori_loop(0, 3, tensor(1.0f64)?, |_, s: Tensor| {
            let scaled = (&v * &s)?;
            scaled.sin()?.sum_all()
        })
    }),
    ("two such values", |x| {
        let (v, w) = (masked(&x)?, masked(&(-&x)?)?);
        fori_loop(0, 2, tensor(0.5f64)?, |_, s: Tensor| {
            (s * (&v).sin()?.sum_all()?)? + (&w).cos()?.mean_all()?
        })
    }),
    ("until a sum is reached", |x| {
        let v = masked(&x)?;
        let start = tensor(0.0f64)?;
        while_loop(start, |s: Tensor| s.less(50.0), |s| s + (&v).square()?.sum_all()?)
    }),
    ("rows beside it", |x| {
        let v = masked(&x)?;
        let rows = tensor([1.0f64, 2.0, 3.0])?;
        let (all, _) = scan(tensor(0.0f64)?, rows, |s: Tensor, row: Tensor| {
            let next = (s + ((&v).square()?.sum_all()? * row)?)?;
            Ok((next.clone(), next))
        })?;
        Ok(all)
    }),
];

#[test]
fn gradients_reach_values_whose_size_the_data_decide_through_loops_that_read_them() {
    let _context = own_context();
    let x = tensor([1.0f64, -2.0, 3.0, -0.5, 0.25]).unwrap();
    for (name, body) in CASES {
        let wanted = grad(body)(x.clone()).unwrap().to_vec::<f64>().unwrap();
        let made = call_checked(&function(grad(body)), &x).to_vec::<f64>().unwrap();
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        assert!(made.iter().zip(&wanted).all(near), "{name}: {made:?}, not {wanted:?}");
    }
}
