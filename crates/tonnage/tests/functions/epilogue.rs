//! An elementwise step behind a product runs as part of it, with the bits of two steps.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{Conv, DType, Elementwise, Result, Tensor, Tree, function, random_normal, tensor};

use crate::common::{call_checked, own_context};

/// Numbers in memory: recipes would be written into the programs that read them.
fn drawn(sizes: &[usize], dtype: DType) -> Tensor {
    let values = random_normal(sizes, DType::F64).unwrap().to_vec::<f64>().unwrap();
    tensor(values).unwrap().reshape(sizes).unwrap().cast(dtype).unwrap()
}

/// The planned call gives the eager bits in the planned bytes; how many of its kernels run a step behind them.
#[track_caller]
fn joined<A: Tree>(f: impl Fn(A) -> Result<Tensor> + Copy + 'static, args: &A) -> usize {
    let planned = function(f);
    let eager = f(args.share()).unwrap().cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let got = call_checked(&planned, args).cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    assert!(got.iter().zip(&eager).all(|(a, b)| a.to_bits() == b.to_bits()));
    let plan = planned.plan(args).unwrap();
    plan.steps.iter().filter(|step| step.epilogue.is_some()).count()
}

#[test]
fn a_bias_and_an_activation_run_as_part_of_the_product() {
    let _context = own_context();
    // Tiles with a rest, several blocks of columns and of K, few rows, few columns, one number.
    let sizes =
        [(37, 50, 29), (30, 1100, 40), (20, 33, 1200), (3, 200, 70), (90, 3, 70), (1, 1, 1)];
    for (rows, cols, k) in sizes {
        for dtype in [DType::F32, DType::F64] {
            let args = (
                drawn(&[rows, k], dtype),
                drawn(&[k, cols], dtype),
                drawn(&[cols], dtype),
                drawn(&[rows, 1], dtype),
            );
            let dense = |(x, w, b, c): (Tensor, Tensor, Tensor, Tensor)| {
                let y = (x.matmul(&w)? + b)?.tanh()?;
                (y * c)? + 1.0
            };
            assert_eq!(joined(dense, &args), 1, "{rows} x {k} x {cols} of {dtype}");
        }
    }
}

#[test]
fn batches_are_finished_matrix_by_matrix() {
    let _context = own_context();
    let f = |(x, w, b): (Tensor, Tensor, Tensor)| (x.matmul(&w)? + b)?.relu();
    let b = drawn(&[2, 3, 1, 20], DType::F32);
    // All alike; one right matrix for all; and batches that no single stride walks.
    for w in [[2, 3, 9, 20], [1, 1, 9, 20], [1, 3, 9, 20]] {
        let args = (drawn(&[2, 3, 11, 9], DType::F32), drawn(&w, DType::F32), b.share());
        assert_eq!(joined(f, &args), 1, "{w:?}");
    }
    let transposed = |(x, w, b): (Tensor, Tensor, Tensor)| {
        (x.matmul(&w)?.reshape([66, 20])?.tanh()? * 2.0)?.reshape([2, 3, 11, 20])? + b
    };
    let args = (drawn(&[2, 3, 11, 9], DType::F32), drawn(&[2, 3, 9, 20], DType::F32), b);
    assert_eq!(joined(transposed, &args), 1, "through views");
}

#[test]
fn convolutions_are_finished_too() {
    let _context = own_context();
    let f = |(x, w, b): (Tensor, Tensor, Tensor)| (x.conv2d(&w, &Conv::valid())? + b)?.relu();
    let grouped =
        |(x, w, b): (Tensor, Tensor, Tensor)| (x.conv2d(&w, &Conv::valid().groups(2))? + b)?.relu();
    let depthwise =
        |(x, w, b): (Tensor, Tensor, Tensor)| (x.conv2d(&w, &Conv::valid().groups(6))? + b)?.relu();
    let (x, b) = (drawn(&[2, 13, 12, 6], DType::F32), drawn(&[12], DType::F32));
    let args = |w: &[usize]| (x.share(), drawn(w, DType::F32), b.share());
    assert_eq!(joined(f, &args(&[3, 3, 6, 12])), 1);
    assert_eq!(joined(f, &args(&[1, 1, 6, 12])), 1, "windows of one pixel");
    assert_eq!(joined(grouped, &args(&[3, 3, 3, 12])), 1);
    assert_eq!(joined(depthwise, &args(&[3, 3, 1, 12])), 1);
}

#[test]
fn what_two_steps_would_round_twice_stays_two_steps() {
    let _context = own_context();
    let f = |(x, w): (Tensor, Tensor)| x.matmul(&w)?.tanh();
    for dtype in [DType::F16, DType::BF16] {
        let args = (drawn(&[20, 30], dtype), drawn(&[30, 40], dtype));
        assert_eq!(joined(f, &args), 0, "{dtype}");
    }
}

#[test]
fn a_product_that_is_read_again_stays_as_it_is() {
    let _context = own_context();
    let both = |(x, w): (Tensor, Tensor)| {
        let y = x.matmul(&w)?;
        y.share().tanh()?.matmul(&y)
    };
    let args = (drawn(&[20, 20], DType::F32), drawn(&[20, 20], DType::F32));
    assert_eq!(joined(both, &args), 0);
    // Element by element, but not its own.
    let transposed = |(x, w): (Tensor, Tensor)| {
        let y = x.matmul(&w)?;
        y.transpose(&[1, 0])? + y
    };
    assert_eq!(joined(transposed, &args), 0);
}
