//! Composites against exact values, with their gradients, at every end.

use super::*;
use crate::convert::Native;
use crate::tape::GradientTape;
use crate::{eye, function, tensor};

fn values(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[track_caller]
fn close(made: &[f64], exact: &[f64], error: f64) {
    assert_eq!(made.len(), exact.len());
    for (made, exact) in made.iter().zip(exact) {
        let off = (made - exact).abs();
        assert!(made == exact || off <= error * exact.abs().max(1e-300), "{made}, not {exact}");
    }
}

fn column<T: Native>(values: &[T]) -> Tensor {
    tensor(values.to_vec()).unwrap().reshape([values.len(), 1]).unwrap()
}

/// What a function gives for `x`, and the slope of each element.
fn with_slope(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> (Vec<f64>, Vec<f64>) {
    let mut tape = GradientTape::new();
    tape.watch(x);
    let y = f(x).unwrap();
    let total = y.sum_all().unwrap();
    let slope = tape.gradient(&total, &[x]).unwrap()[0].tensor().unwrap();
    (values(&y), values(&slope))
}

#[test]
fn erfinv_undoes_erf_to_the_last_bits() {
    let y = [0.0, 1e-9, 0.3, -0.7, 1.2, 2.5, -2.9];
    let x = tensor(y).unwrap().erf().unwrap();
    let (made, slope) = with_slope(&x, |x| x.erfinv());
    // Near 1 numbers that differ have one erf.
    close(&made[..5], &y[..5], 1e-14);
    close(&made, &y, 1e-11);
    close(&values(&tensor(made.clone()).unwrap().erf().unwrap()), &values(&x), 1e-15);
    let exact: Vec<f64> = made.iter().map(|y| 0.5 * PI.sqrt() * (y * y).exp()).collect();
    close(&slope, &exact, 1e-12);
    let ends = values(&tensor([1.0f32, -1.0, 1.5, f32::NAN]).unwrap().erfinv().unwrap());
    assert_eq!(ends[..2], [f64::INFINITY, f64::NEG_INFINITY]);
    assert!(ends[2].is_nan() && ends[3].is_nan());
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let x = tensor([0.25f64]).unwrap().cast(dtype).unwrap();
        let made = x.erfinv().unwrap();
        assert_eq!(made.dtype(), dtype);
        close(&values(&made), &[0.22531205501217808], 1e-2);
    }
    let error = tensor([1i32]).unwrap().erfinv().unwrap_err().to_string();
    assert!(error.contains("erfinv") && error.contains("i32"), "{error}");
}

#[test]
fn ndtri_gives_quantiles_far_into_the_tails() {
    let p = [0.5, 0.025, 0.975, 1e-10, 1e-20, 1e-37, 1e-280, 1e-291, 1e-300];
    let exact = [
        0.0,
        -1.9599639845400545,
        1.959963984540054,
        -6.361340902404056,
        -9.262340089798405,
        -12.784556666602299,
        -35.78342139466302,
        -36.48385132976048,
        -37.0470962993612,
    ];
    let (made, slope) = with_slope(&tensor(p).unwrap(), |x| x.ndtri());
    close(&made, &exact, 1e-13);
    // One over the density.
    let density: Vec<f64> = made.iter().map(|x| (2.0 * PI).sqrt() * (0.5 * x * x).exp()).collect();
    close(&slope, &density, 1e-12);
    let subnormal = tensor([1e-310f64, 5e-324]).unwrap().ndtri().unwrap();
    close(&values(&subnormal), &[-37.663060331949524, -38.467405617144344], 1e-14);
    let ends = tensor([0.0f32, 1.0, -0.1, 1.1, f32::NAN]).unwrap();
    let ends = values(&ends.ndtri().unwrap());
    assert_eq!(ends[..2], [f64::NEG_INFINITY, f64::INFINITY]);
    assert!(ends[2..].iter().all(|x| x.is_nan()), "{ends:?}");
    assert!(tensor([true]).unwrap().ndtri().is_err());
}

#[test]
fn running_sums_of_exponentials_neither_overflow_nor_lose_infinities() {
    let x = [[0.0f64, 1000.0, -3.0, 1000.0], [f64::NEG_INFINITY, -1.0, f64::INFINITY, 2.0]];
    for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
        let how = Scan { exclusive, reverse };
        let made = tensor(x).unwrap().cumulative_logsumexp_by(1, how).unwrap();
        for (row, made) in x.iter().zip(made.to_vec2::<f64>().unwrap()) {
            for (i, made) in made.into_iter().enumerate() {
                let (from, to) = match reverse {
                    true => (i + usize::from(exclusive), row.len()),
                    false => (0, i + usize::from(!exclusive)),
                };
                let of = &row[from..to];
                let most = of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let exact = match most.is_finite() {
                    true => most + of.iter().map(|x| (x - most).exp()).sum::<f64>().ln(),
                    false => most,
                };
                close(&[made], &[exact], 1e-15);
            }
        }
        let transposed = tensor(x).unwrap().t().unwrap();
        let other = transposed.cumulative_logsumexp_by(-2, how).unwrap().t().unwrap();
        assert_eq!(values(&other), values(&made));
    }
    // The gradient of the last one is a softmax; so it is in a function.
    let x = tensor([1.0f64, -2.0, 3.0]).unwrap();
    let last = |x: &Tensor| x.cumulative_logsumexp(0)?.gather(&tensor([2i64])?, 0);
    let (_, slope) = with_slope(&x, last);
    close(&slope, &values(&x.softmax(0).unwrap()), 1e-14);
    let planned = function(|x: Tensor| x.cumulative_logsumexp(0));
    let eager = x.cumulative_logsumexp(0).unwrap();
    assert_eq!(values(&planned.call(x.clone()).unwrap()), values(&eager));
    let half = x.cast(DType::F16).unwrap().cumulative_logsumexp(0).unwrap();
    assert_eq!(half.dtype(), DType::F16);
    close(&values(&half), &values(&eager), 1e-3);
    let error = tensor([1.0f32]).unwrap().cumulative_logsumexp(1).unwrap_err().to_string();
    assert!(error.contains("cumulative_logsumexp"), "{error}");
    assert!(tensor([1i32]).unwrap().cumulative_logsumexp(0).is_err());
}

#[test]
fn zero_times_anything_is_zero_with_its_slope() {
    let x = tensor([0.0f64, 2.0]).unwrap();
    let y = tensor([0.0f64, 4.0]).unwrap();
    let (made, slope) = with_slope(&x, |x| x.xdivy(&y));
    assert_eq!((made, slope), (vec![0.0, 0.5], vec![0.0, 0.25]));
    let y = tensor([-1.0f64, 0.0]).unwrap();
    let (made, slope) = with_slope(&y, |y| x.xlog1py(y));
    assert_eq!((made, slope), (vec![0.0, 0.0], vec![0.0, 2.0]));
    assert!(tensor([1i32]).unwrap().xdivy(&tensor([1i32]).unwrap()).is_err());
    // B(a, b) = (a - 1)! (b - 1)! / (a + b - 1)!
    let (made, slope) = with_slope(&tensor([3.0f64, 4.0]).unwrap(), |x| x.lbeta());
    close(&made, &[(12.0f64 / 720.0).ln()], 1e-14);
    // digamma(3) - digamma(7) and digamma(4) - digamma(7)
    close(&slope, &[-0.95, -(1.0 / 4.0 + 1.0 / 5.0 + 1.0 / 6.0)], 1e-13);
}

#[test]
fn systems_are_solved_in_the_ways_that_go_by_other_ops() {
    let a = tensor([[4.0f64, 2.0], [2.0, 5.0]]).unwrap();
    let b = column(&[6.0f64, 7.0]);
    let x = a.cholesky().unwrap().cholesky_solve(&b).unwrap();
    close(&values(&x), &[1.0, 1.0], 1e-14);
    let log = values(&a.logdet().unwrap());
    close(&log, &[16.0f64.ln()], 1e-14);
    let mirror = tensor([[0.0f64, 1.0], [1.0, 0.0]]).unwrap();
    assert!(values(&mirror.logdet().unwrap())[0].is_nan());
    // (AᵀA + w) X = AᵀB.
    let wide = tensor([[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
    let x = wide.lstsq_regularized(&b, 0.5).unwrap();
    let square = wide.t().unwrap().matmul(&wide).unwrap();
    let square = (square + (eye(3, DType::F64).unwrap() * 0.5).unwrap()).unwrap();
    let back = values(&square.matmul(&x).unwrap());
    close(&back, &values(&wide.t().unwrap().matmul(&b).unwrap()), 1e-12);
}

#[test]
fn a_pseudo_inverse_undoes_what_a_matrix_keeps() {
    let outer = tensor([[3.0f64, 4.0, 5.0], [6.0, 8.0, 10.0]]).unwrap();
    for dtype in [DType::F64, DType::F32] {
        let a = (&outer).cast(dtype).unwrap();
        let made = a.pinv().unwrap();
        assert_eq!((made.dtype(), made.shape().to_string()), (dtype, "[3, 2]".to_string()));
        let back = a.matmul(&made).unwrap().matmul(&a).unwrap();
        close(&values(&back), &values(&outer), if dtype == DType::F64 { 1e-13 } else { 1e-5 });
    }
    let two = tensor([[[2.0f32, 0.0], [0.0, 0.1]], [[1.0, 0.0], [0.0, 1.0]]]).unwrap();
    let few = two.pinv_by(0.1).unwrap();
    close(&values(&few), &[0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0], 1e-6);
    let limits = tensor([0.1f32]).unwrap();
    assert_eq!(values(&two.pinv_by(&limits).unwrap()), values(&few));
    assert!(tensor([1.0f32]).unwrap().pinv().is_err());
}
