//! Functions that are recomputed in the backward pass, with results whose sizes are computed from sizes that the data decide inside: nothing outside of them
//! says those sizes one by one.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    DType, Dim, Elementwise, Part, Result, Tensor, checkpoint, concat, function, grad, jvp, tensor,
};

use crate::common::{call_checked, own_context};

type Case = (&'static str, fn(Tensor) -> Result<Tensor>);

fn low(x: &Tensor) -> Result<Tensor> {
    x.boolean_mask(&x.less(2.5)?)
}

fn high(x: &Tensor) -> Result<Tensor> {
    x.boolean_mask(&tensor(1.5f64)?.less(x)?)
}

fn table(x: &Tensor) -> Result<Tensor> {
    low(x)?.expand_dims(1)? * high(x)?.expand_dims(0)?
}

/// What goes into the size of a result.
const CASES: [Case; 7] = [
    ("a product", |x| table(&x)?.reshape([-1])?.sin()),
    ("two sizes", |x| table(&x)?.sin()),
    ("a product and a number", |x| concat(&[&table(&x)?.reshape([-1])?, &x], 0)?.sin()),
    ("a sum", |x| concat(&[&low(&x)?, &high(&x)?], 0)?.sin()),
    ("a lesser one", |x| low(&x)?.slice(&[(0..2).into()])?.sin()),
    ("a difference", |x| low(&x)?.slice(&[(1..).into()])?.sin()),
    ("a quotient", |x| low(&x)?.slice(&[Part::ALL.by(2)])?.sin()),
];

fn x() -> Tensor {
    tensor([0.5f64, 1.0, 2.0, 3.0, 2.25, 4.0]).unwrap()
}

/// Compares a function of checkpointed functions with the same of the functions as they are.
fn check(of: impl Fn(&dyn Fn(Tensor) -> Result<Tensor>, Tensor) -> Result<Tensor> + Copy) {
    let _context = own_context();
    for (name, body) in CASES {
        let wanted = grad(move |x: Tensor| of(&body, x))(x()).unwrap().to_vec::<f64>().unwrap();
        let light = checkpoint(body);
        let loss = |x: Tensor| of(&light, x);
        let open = function(grad(loss)).signature(Tensor::spec(DType::F64, [Dim::open("n")]));
        let made = [
            ("eagerly", grad(loss)(x()).unwrap()),
            ("in a function", call_checked(&function(grad(loss)), &x())),
            ("of an open length", call_checked(&open, &x())),
        ];
        for (how, made) in made {
            let made = made.to_vec::<f64>().unwrap();
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
            assert!(made.iter().zip(&wanted).all(near), "{name}, {how}: {made:?}, not {wanted:?}");
        }
    }
}

#[test]
fn a_result_is_summed() {
    check(|f, x| f(x)?.sum_all());
}

#[test]
fn a_result_meets_values_of_its_size() {
    check(|f, x| {
        let y = f(x)?;
        ((&y * (&y).exp()?)? + y.zeros_like()?)?.sum_all()
    });
}

#[test]
fn a_result_goes_into_another_checkpointed_function() {
    check(|f, x| checkpoint(|y: Tensor| ((&y).exp()? * &y)?.cos())(f(x)?)?.sum_all());
}

#[test]
fn a_checkpointed_function_calls_another() {
    check(|f, x| {
        checkpoint(|x: Tensor| (f(x.clone())?.exp()?.sum_all()? + f(x)?)?.cos())(x)?.sum_all()
    });
}

#[test]
fn two_calls_of_a_checkpointed_function_have_sizes_of_their_own() {
    check(|f, x| f(x.clone())?.sum_all()? * f((x * 0.75)?)?.exp()?.sum_all()?);
}

#[test]
fn results_have_second_gradients() {
    check(|f, x| grad(|x: Tensor| f(x)?.sum_all())(x)?.square()?.sum_all());
}

#[test]
fn results_have_tangents() {
    check(|f, x| jvp(|x: Tensor| f(x), x.clone(), x)?.1.sum_all());
}
