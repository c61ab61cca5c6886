//! Factorizations and Fourier transforms, the whole way: what they multiply back to, matrices that lack a rank, planned to the
//! byte, differentiated, and refused.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Check, DType, Elementwise, ErrorKind, GradientTape, RandomKey, Result, Tensor, check_gradients,
    eye, function, tensor, zeros,
};

use crate::common::{call_checked, close, own_context};
use crate::refused;

fn draw(seed: u64, shape: &[usize], dtype: DType) -> Tensor {
    RandomKey::new(seed).normal(shape, dtype).unwrap().identity().unwrap()
}

fn values(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn step(dtype: DType) -> f64 {
    if dtype == DType::F64 { 2e-13 } else { 1e-4 }
}

/// Columns of length 1 that have nothing in common.
#[track_caller]
fn orthonormal(x: &Tensor) {
    let n = x.shape().last().unwrap().known().unwrap();
    let products = x.t().unwrap().matmul(x).unwrap();
    let shape = products.shape();
    let ones = eye(n, x.dtype()).unwrap().broadcast_to(&shape).unwrap();
    close(&products, &values(&ones), step(x.dtype()));
}

const SHAPES: [&[usize]; 6] = [&[90, 60], &[60, 90], &[33, 33], &[5, 3, 4], &[130, 130], &[1, 7]];

#[test]
fn q_and_r_multiply_back() {
    let _context = own_context();
    for dtype in [DType::F64, DType::F32] {
        for shape in SHAPES {
            let a = draw(1, shape, dtype);
            let (q, r) = a.qr().unwrap();
            orthonormal(&q);
            close(&q.matmul(&r).unwrap(), &values(&a), 10.0 * step(dtype));
            close(&r.triu(0).unwrap(), &values(&r), 0.0);
            assert!(values(&r.diag_part(0).unwrap()).iter().all(|x| *x >= 0.0));
        }
    }
}

#[test]
fn singular_vectors_multiply_back() {
    let _context = own_context();
    for dtype in [DType::F64, DType::F32] {
        for shape in SHAPES {
            let a = draw(2, shape, dtype);
            let (u, s, v) = a.svd().unwrap();
            orthonormal(&u);
            orthonormal(&v);
            let row = s.expand_dims(-2).unwrap();
            let back = (&u * &row).unwrap().matmul(&v.t().unwrap()).unwrap();
            close(&back, &values(&a), 30.0 * step(dtype));
            let rows = values(&s);
            let k = s.shape().last().unwrap().known().unwrap();
            assert!(rows.chunks(k).all(|s| s.is_sorted_by(|a, b| a >= b) && s[k - 1] >= 0.0));
        }
    }
}

#[test]
fn eigenvectors_multiply_back() {
    let _context = own_context();
    for dtype in [DType::F64, DType::F32] {
        for shape in [&[33, 33][..], &[4, 5, 5], &[130, 130], &[1, 1], &[2, 2]] {
            let a = draw(3, shape, dtype);
            let even = ((&a + a.t().unwrap()).unwrap() * 0.5).unwrap();
            let (w, v) = a.eigh().unwrap();
            orthonormal(&v);
            let row = w.expand_dims(-2).unwrap();
            let back = (&v * &row).unwrap().matmul(&v.t().unwrap()).unwrap();
            close(&back, &values(&even), 30.0 * step(dtype));
            let n = w.shape().last().unwrap().known().unwrap();
            assert!(values(&w).chunks(n).all(|w| w.is_sorted()));
        }
    }
}

/// Values whose squares are no numbers, equal values, and a matrix that falls apart into two.
#[test]
fn eigenvalues_of_any_size_are_found() {
    let _context = own_context();
    let a = draw(6, &[40, 40], DType::F64);
    let plain = values(&a.eigh().unwrap().0);
    for power in [600, -600] {
        let scale = 2f64.powi(power);
        let (w, v) = (&a * scale).unwrap().eigh().unwrap();
        orthonormal(&v);
        let back: Vec<f64> = values(&w).iter().map(|w| w / scale).collect();
        close(&tensor(back).unwrap(), &plain, 1e-12);
    }
    let apart = (0..64).map(|i| if i / 8 / 4 == i % 8 / 4 { 1.0 } else { 0.0 });
    let apart = tensor(apart.collect::<Vec<f64>>()).unwrap().reshape([8, 8]).unwrap();
    let (w, v) = apart.eigh().unwrap();
    orthonormal(&v);
    close(&w, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 4.0], 1e-14);
}

#[test]
fn matrices_that_lack_a_rank_have_orthonormal_vectors_too() {
    let _context = own_context();
    let thin = draw(4, &[8, 2], DType::F64);
    let low = thin.matmul(&draw(5, &[2, 6], DType::F64)).unwrap();
    let nothing = zeros([4, 3]).unwrap().identity().unwrap();
    let equal = (eye(5, DType::F64).unwrap() * 3.0).unwrap();
    for a in [&low, &low.t().unwrap(), &nothing, &equal] {
        let (u, s, v) = a.svd().unwrap();
        orthonormal(&u);
        orthonormal(&v);
        let row = s.expand_dims(-2).unwrap();
        let back = (&u * &row).unwrap().matmul(&v.t().unwrap()).unwrap();
        close(&back, &values(a), 1e-12);
        let (q, r) = a.qr().unwrap();
        orthonormal(&q);
        close(&q.matmul(&r).unwrap(), &values(a), 1e-12);
    }
    assert!(values(&low.svd().unwrap().1)[2..].iter().all(|s| *s < 1e-13));
    let (w, v) = equal.eigh().unwrap();
    orthonormal(&v);
    close(&w, &[3.0; 5], 1e-14);
    // Far from 1 too.
    for scale in [1e-150, 1e150] {
        let (_, s, _) = (&thin * scale).unwrap().svd().unwrap();
        let plain = values(&thin.svd().unwrap().1);
        close(&(s / scale).unwrap(), &plain, 1e-12);
    }
}

#[test]
fn least_squares_leave_nothing_along_the_columns() {
    let _context = own_context();
    let (a, b) = (draw(6, &[3, 9, 4], DType::F64), draw(7, &[3, 9, 2], DType::F64));
    let x = a.lstsq(&b).unwrap();
    let left = (a.matmul(&x).unwrap() - &b).unwrap();
    close(&a.t().unwrap().matmul(&left).unwrap(), &[0.0; 24], 1e-12);
    // With more unknowns than equations: solved, and no longer than it has to be, so made of rows.
    let (a, b) = (draw(8, &[3, 5], DType::F64), draw(9, &[3, 2], DType::F64));
    let x = a.lstsq(&b).unwrap();
    close(&a.matmul(&x).unwrap(), &values(&b), 1e-12);
    let (_, _, v) = a.svd().unwrap();
    let within = v.matmul(&v.t().unwrap().matmul(&x).unwrap()).unwrap();
    close(&within, &values(&x), 1e-12);
    check_gradients(|(a, b): (Tensor, Tensor)| a.lstsq(&b), &(a, b), Check::default()).unwrap();
}

#[test]
fn factorizations_are_planned_to_the_byte_and_agree_with_eager_mode() {
    let _context = own_context();
    let f = |a: Tensor| -> Result<(Tensor, Tensor, Tensor)> {
        let mut tape = GradientTape::new();
        tape.watch(&a);
        let (q, r) = a.qr()?;
        let (u, s, v) = a.svd()?;
        let (w, x) = a.t()?.matmul(&a)?.eigh()?;
        let parts = [q.square()?.mean_all()?, r.sum_all()?, u.sum_all()?, s.sum_all()?];
        let more = [v.sum_all()?, w.sum_all()?, x.sum_all()?];
        let loss = parts
            .iter()
            .chain(&more)
            .try_fold(zeros(())?, |sum, part| sum.cast(DType::F64)? + part)?;
        let grads = tape.gradient(&loss, &[&a])?;
        Ok((loss, s, grads[0].tensor()?))
    };
    for shape in [&[7, 4][..], &[3, 6, 5]] {
        let a = draw(10, shape, DType::F64);
        let eager = f(a.clone()).unwrap();
        let planned = call_checked(&function(f), &a);
        close(&planned.0, &values(&eager.0), 1e-9);
        close(&planned.1, &values(&eager.1), 1e-12);
        close(&planned.2, &values(&eager.2), 1e-7);
    }
}

#[test]
fn transforms_go_there_and_back_along_any_axis_and_length() {
    let _context = own_context();
    for n in [1, 2, 6, 16, 97, 100, 210, 1009, 1024, 2 * 509] {
        let (x, y) = (draw(11, &[3, n, 2], DType::F64), draw(12, &[3, n, 2], DType::F64));
        let (re, im) = x.fft(&y, 1).unwrap();
        let (x_back, y_back) = re.ifft(&im, 1).unwrap();
        close(&x_back, &values(&x), 1e-12);
        close(&y_back, &values(&y), 1e-12);
        // No energy is lost.
        let energy = |a: &Tensor, b: &Tensor| -> f64 {
            values(a).iter().chain(&values(b)).map(|x| x * x).sum()
        };
        let (there, here) = (energy(&re, &im) / n as f64, energy(&x, &y));
        assert!((there - here).abs() < 1e-9 * here, "{n}: {there} and {here}");
        let (re, im) = x.rfft(1).unwrap();
        close(&re.irfft(&im, n, 1).unwrap(), &values(&x), 1e-12);
    }
    // A plain wave is one line.
    let wave: Vec<f64> =
        (0..60).map(|i| (std::f64::consts::TAU * 7.0 * f64::from(i) / 60.0).cos()).collect();
    let (re, _) = tensor(wave).unwrap().rfft(0).unwrap();
    let mut line = vec![0.0; 31];
    line[7] = 30.0;
    close(&re, &line, 1e-12);
}

#[test]
fn transforms_are_planned_to_the_byte_and_take_only_their_tables() {
    let _context = own_context();
    let f = |(x, y): (Tensor, Tensor)| -> Result<(Tensor, Tensor)> {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let (re, im) = x.fft(&y, -1)?;
        let loss = (re.square()? + im.square()?)?.sum_all()?;
        let grads = tape.gradient(&loss, &[&x])?;
        Ok((loss, grads[0].tensor()?))
    };
    let (x, y) = (draw(13, &[20, 1000], DType::F64), draw(14, &[20, 1000], DType::F64));
    let (_, grad) = call_checked(&function(f), &(x.clone(), y));
    // The energy is that of the signal, as often as it is long. Errors are in proportion to the largest element.
    close(&grad, &values(&(&x * 2000.0).unwrap()), 1e-10);
    let half = function(|x: Tensor| x.rfft(-1));
    call_checked(&half, &draw(15, &[3, 1009], DType::F32));
}

#[test]
fn matrices_and_signals_that_have_no_answer_are_refused() {
    let _context = own_context();
    let mut bad = vec![1.0f32; 18];
    bad[13] = f32::NAN;
    let bad = tensor(bad).unwrap().reshape([2, 3, 3]).unwrap();
    refused!(bad.svd(), ErrorKind::Singular { .. }, "svd: matrix 1 is not finite", "NaN");
    refused!(bad.eigh(), ErrorKind::Singular { .. }, "eigh: matrix 1 is not finite", "NaN");
    let vector = tensor([1.0f32, 2.0]).unwrap();
    refused!(vector.qr(), ErrorKind::RankMismatch { .. }, "qr: ", "at least 2");
    let whole = tensor([[1, 2], [3, 4]]).unwrap();
    refused!(whole.svd(), ErrorKind::DTypeUnsupported { .. }, "svd: ", "f32 or f64");
    let wide = zeros([2, 3]).unwrap();
    refused!(wide.eigh(), ErrorKind::BadArgument { .. }, "eigh: ", "not square");
    let twice = tensor([[1.0f64, 2.0], [1.0, 2.0], [1.0, 2.0]]).unwrap();
    let right = zeros([3, 1]).unwrap().cast(DType::F64).unwrap();
    refused!(twice.lstsq(&wide), ErrorKind::BadArgument { .. }, "lstsq: ", "[3, 2]", "[2, 3]");
    // Rounding leaves a little where there should be nothing.
    let made = twice.lstsq(&right);
    assert!(made.is_err() || values(&made.unwrap()).iter().all(|x| x.is_finite()));
    let empty = zeros([3, 0]).unwrap();
    refused!(empty.rfft(-1), ErrorKind::BadArgument { .. }, "rfft: ", "at least one element");
    refused!(empty.fft(&wide, -1), ErrorKind::ShapeMismatch { .. }, "fft: ", "[3, 0]", "[2, 3]");
    refused!(wide.irfft(&wide, 9, -1), ErrorKind::ShapeMismatch { .. }, "irfft: ", "[2, 5]");
    refused!(wide.irfft(&wide, 0, -1), ErrorKind::BadArgument { .. }, "irfft: ", "at least 1");
    refused!(wide.rfft(2), ErrorKind::AxisOutOfRange { .. }, "rfft: ");
}
