//! What is read transposed, a block at a time, is what is read element by element.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{DType, Elementwise, Tensor, function, range};

/// Whole numbers from 0 on, as floats, in memory.
fn counted(sizes: &[i64]) -> Tensor {
    let count = sizes.iter().product();
    let all: Vec<i64> = range(0, count, 1).unwrap().to_vec().unwrap();
    let all: Vec<f64> = all.into_iter().map(|x| x as f64).collect();
    tonnage::tensor(all).unwrap().reshape(sizes).unwrap()
}

/// The elements of a tensor of `sizes`, counted from 0 on, in the order that the axes `order` give.
fn transposed(sizes: &[usize], order: &[usize]) -> Vec<f64> {
    let mut strides = vec![1; sizes.len()];
    for axis in (1..sizes.len()).rev() {
        strides[axis - 1] = strides[axis] * sizes[axis];
    }
    let mut all = vec![0];
    for axis in order {
        all = all
            .iter()
            .flat_map(|at| (0..sizes[*axis]).map(move |i| (at, i)))
            .map(|(at, i)| at + i * strides[*axis])
            .collect();
    }
    all.into_iter().map(|at| at as f64).collect()
}

#[test]
fn every_order_of_axes_is_copied_right() {
    let cases: [(&[usize], &[usize]); 7] = [
        (&[150, 131], &[1, 0]),
        (&[16, 1024], &[1, 0]),
        (&[1025, 17], &[1, 0]),
        (&[3, 90, 70], &[0, 2, 1]),
        (&[40, 21, 30], &[2, 1, 0]),
        (&[40, 21, 30], &[1, 2, 0]),
        (&[5, 19, 9, 33], &[0, 3, 2, 1]),
    ];
    for (sizes, order) in cases {
        let signed: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
        let axes: Vec<i64> = order.iter().map(|a| *a as i64).collect();
        let expected = transposed(sizes, order);
        for dtype in [DType::F64, DType::F32, DType::I64] {
            let x = counted(&signed).cast(dtype).unwrap();
            let copied = x.transpose(&axes).unwrap().reshape([-1]).unwrap();
            let got: Vec<f64> = copied.cast(DType::F64).unwrap().to_vec().unwrap();
            assert!(got == expected, "{sizes:?} {order:?} {dtype}");
        }
        for (dtype, most) in [(DType::U8, 256.0), (DType::BF16, 256.0), (DType::I16, 32768.0)] {
            let values: Vec<f64> = counted(&signed).to_vec().unwrap();
            let values: Vec<f64> = values.into_iter().map(|x| x % most).collect();
            let x = tonnage::tensor(values).unwrap().reshape(&signed[..]).unwrap();
            let x = x.cast(dtype).unwrap();
            let copied = x.transpose(&axes).unwrap().reshape([-1]).unwrap();
            let got: Vec<f64> = copied.cast(DType::F64).unwrap().to_vec().unwrap();
            assert!(got.iter().zip(&expected).all(|(a, b)| *a == b % most), "{sizes:?} {dtype}");
        }
    }
}

#[test]
fn parts_and_chains_read_transposed_are_those_read_straight() {
    let x = counted(&[300, 200]);
    let straight = |x: &Tensor| -> Tensor {
        let copied: Vec<Vec<f64>> = x.transpose(&[1, 0]).unwrap().to_vec2().unwrap();
        tonnage::tensor(copied).unwrap()
    };
    // From the middle.
    let part = x.slice(&[(7..290).into(), (3..190).into()]).unwrap();
    let f = function(|(a, b): (Tensor, Tensor)| {
        let a = a.transpose(&[1, 0])?;
        (&a * 2.0)? + (b * a.tanh()?)?
    });
    let other = straight(&part.clone().sqrt().unwrap());
    let rows: Vec<f64> = part.to_vec().unwrap();
    let (height, width) = (283, 187);
    let value = |i: usize, j: usize| {
        let x = rows[j * width + i];
        2.0 * x + x.sqrt() * x.tanh()
    };
    let expected: Vec<f64> = (0..width)
        .flat_map(|i| (0..height).map(move |j| (i, j)))
        .map(|(i, j)| value(i, j))
        .collect();
    let got: Vec<f64> = f.call((part, other)).unwrap().to_vec().unwrap();
    for (got, expected) in got.iter().zip(&expected) {
        assert!((got - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{got} {expected}");
    }
}
