//! Where a slope is infinite or NaN and nothing depends on the result, the gradient is 0, not NaN: functions whose slope is infinite at 0, in every float
//! dtype, eagerly and in a function, by gradients and by tangents. Where something does depend on it, it is infinite.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{DType, Elementwise, Result, Tensor, function, grad, jvp, tensor};

use crate::common::own_context;

type Op = (&'static str, fn(&Tensor) -> Result<Tensor>, fn(f64) -> f64);

const OPS: [Op; 3] = [
    ("sqrt", |x| x.sqrt(), |x| 0.5 / x.sqrt()),
    ("rsqrt", |x| x.rsqrt(), |x| -0.5 / (x * x.sqrt())),
    ("reciprocal", |x| x.reciprocal(), |x| -1.0 / (x * x)),
];

const X: [f64; 5] = [0.0, 0.25, 0.0, 4.0, -1.0];
/// What comes in for each.
const GRADS: [f64; 5] = [0.0, 2.0, 1.0, 0.0, 0.0];

fn expected(slope: fn(f64) -> f64) -> Vec<f64> {
    let one = |(x, g): (&f64, &f64)| if *g == 0.0 { 0.0 } else { slope(*x) * g };
    X.iter().zip(&GRADS).map(one).collect()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[test]
fn what_nothing_depends_on_has_a_gradient_of_0() {
    let _context = own_context();
    for (name, op, slope) in OPS {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let x = tensor(X).unwrap().cast(dtype).unwrap();
            let g = tensor(GRADS).unwrap().cast(dtype).unwrap();
            let loss = |x: Tensor| (op(&x)? * &g)?.sum_all();
            let wanted = expected(slope);
            let eager = grad(loss)(x.clone()).unwrap();
            assert_eq!(values(&eager), wanted, "{name} {dtype:?}, eagerly");
            let planned = function(grad(loss)).call(x.clone()).unwrap();
            assert_eq!(values(&planned), wanted, "{name} {dtype:?}, in a function");
            let (_, tangent) = jvp(|x: Tensor| op(&x), x.clone(), g.clone()).unwrap();
            assert_eq!(values(&tangent), wanted, "{name} {dtype:?}, tangents");
        }
    }
}

#[test]
fn a_gradient_of_0_still_has_the_slope_for_its_own() {
    let _context = own_context();
    for (name, op, slope) in OPS {
        let x = tensor([4.0f64, 0.25]).unwrap();
        let g = tensor([0.0f64, 1.0]).unwrap();
        // Along what comes in: the slope, where what comes in is 0 too.
        let of = |g: Tensor| grad(|x: Tensor| (op(&x)? * &g)?.sum_all())(x.clone())?.sum_all();
        let wanted = vec![slope(4.0), slope(0.25)];
        assert_eq!(values(&grad(of)(g.clone()).unwrap()), wanted, "{name}, eagerly");
        assert_eq!(values(&function(grad(of)).call(g).unwrap()), wanted, "{name}, in a function");
    }
}

#[test]
fn gradients_that_are_written_with_such_a_function_have_a_gradient_of_0_too() {
    let _context = own_context();
    // Their gradients are written with the reciprocal of a root.
    type At = (&'static str, fn(&Tensor) -> Result<Tensor>, f64);
    let ops: [At; 2] = [("asin", |x| x.asin(), 1.0), ("acos", |x| x.acos(), -1.0)];
    for (name, op, at) in ops {
        let x = tensor([at]).unwrap();
        let g = tensor([0.0f64]).unwrap();
        let first = |x: Tensor| grad(|x: Tensor| (op(&x)? * &g)?.sum_all())(x)?.sum_all();
        assert_eq!(values(&grad(first)(x.clone()).unwrap()), [0.0], "{name}, eagerly");
        let planned = function(grad(first)).call(x).unwrap();
        assert_eq!(values(&planned), [0.0], "{name}, in a function");
    }
}
