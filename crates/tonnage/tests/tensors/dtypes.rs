//! Every dtype goes through the same few ops, and prints.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{DType, Elementwise, GradientTape, Tensor, bf16, f16, full, range, tensor};

fn plain(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[test]
fn every_dtype_adds_multiplies_casts_sums_and_prints() {
    for dtype in DType::ALL {
        let x = tensor([[1.0f64, 0.0, 1.0], [1.0, 1.0, 0.0]]).unwrap().cast(dtype).unwrap();
        assert_eq!((x.dtype(), x.shape().to_string()), (dtype, "[2, 3]".to_string()));
        assert_eq!(plain(&x), [1.0, 0.0, 1.0, 1.0, 1.0, 0.0], "{dtype}");
        let text = x.to_string();
        let (yes, no) = match dtype {
            DType::Bool => ("true", "false"),
            _ => ("1", "0"),
        };
        assert!(text.contains(yes) && text.contains(no), "{dtype}: {text}");
        for to in DType::ALL {
            assert_eq!(plain(&(&x).cast(to).unwrap()), plain(&x), "{dtype} to {to}");
        }
        if dtype == DType::Bool {
            assert!((&x + &x).is_err(), "booleans are no numbers");
            continue;
        }
        assert_eq!(plain(&(&x + &x).unwrap()), [2.0, 0.0, 2.0, 2.0, 2.0, 0.0], "{dtype}");
        let y = (&x * 3).unwrap();
        assert_eq!(y.dtype(), dtype, "a number takes the tensor's dtype");
        assert_eq!(plain(&(&y * &x).unwrap()), [3.0, 0.0, 3.0, 3.0, 3.0, 0.0], "{dtype}");
        assert_eq!(plain(&y.sum([0]).unwrap()), [6.0, 3.0, 3.0], "{dtype}");
        assert_eq!(plain(&y.max([1]).unwrap()), [3.0, 3.0], "{dtype}");
        assert_eq!(plain(&full(2, dtype, [2]).unwrap()), [2.0, 2.0], "{dtype}");
    }
}

#[test]
fn half_floats_compute_in_f32_and_round_once() {
    let x = [0.1f32, -0.7, 1.3, 2.9];
    let halves = tensor(x.map(f16::from_f32)).unwrap();
    let brains = tensor(x.map(bf16::from_f32)).unwrap();
    let compute = |t: &Tensor| ((t * t).unwrap() + t).unwrap().tanh().unwrap();
    for (got, h) in compute(&halves).to_vec::<f16>().unwrap().iter().zip(x.map(f16::from_f32)) {
        let h = h.to_f32();
        let expected = (h * h + h).tanh();
        assert!((got.to_f32() - expected).abs() <= 4.0 * 0.000_977, "{got} {expected}");
    }
    for (got, h) in compute(&brains).to_vec::<bf16>().unwrap().iter().zip(x.map(bf16::from_f32)) {
        let h = h.to_f32();
        let expected = (h * h + h).tanh();
        assert!((got.to_f32() - expected).abs() <= 4.0 * 0.0078, "{got} {expected}");
    }
    // A sum of more than a half float counts up to one by one: it is added up in f32.
    let many = full(1.0, DType::F16, [4096]).unwrap();
    assert_eq!(many.sum_all().unwrap().scalar::<f16>().unwrap().to_f32(), 4096.0);
    let many = full(1.0, DType::BF16, [1024]).unwrap();
    assert_eq!(many.sum_all().unwrap().scalar::<bf16>().unwrap().to_f32(), 1024.0);
    for dtype in [DType::F16, DType::BF16] {
        let a = range(0.0f32, 6.0, 1.0).unwrap().reshape([2, 3]).unwrap().cast(dtype).unwrap();
        let product = a.matmul(&a.t().unwrap()).unwrap();
        assert_eq!(product.dtype(), dtype);
        assert_eq!(plain(&product), [5.0, 14.0, 14.0, 50.0], "{dtype}");
        let mut tape = GradientTape::new();
        tape.watch(&a);
        let loss = (&a).square().unwrap().sum_all().unwrap();
        let grads = tape.gradient(&loss, &[&a]).unwrap();
        let grad = grads[0].tensor().unwrap();
        assert_eq!(grad.dtype(), dtype);
        assert_eq!(plain(&grad), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0], "{dtype}");
    }
}
