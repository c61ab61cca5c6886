//! Types that many rows are tested with: every dtype that fits, scalars, empty tensors, broadcasts, and
//! sizes around a tile's edge.

use tonnage_core::attrs::Attrs;
use tonnage_core::row::{Sample, Values};
use tonnage_core::{DType, TensorType};

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

fn numbers() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|d| *d != DType::Bool)
}

fn one(dtypes: impl Iterator<Item = DType>, values: Values) -> Vec<Sample> {
    let of = |dtype, shape: &[usize]| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::None).with(0, values)
    };
    let mut all: Vec<Sample> = dtypes.map(|dtype| of(dtype, &[2, 3])).collect();
    for shape in [&[][..], &[0], &[1], &[1023], &[1024], &[1025], &[5, 1, 410]] {
        all.push(of(DType::F32, shape));
    }
    all
}

/// One float tensor.
pub fn unary_float() -> Vec<Sample> {
    one(FLOATS.into_iter(), Values::Normal)
}

/// One float tensor with values in a range.
pub fn unary_float_between(low: f64, high: f64) -> Vec<Sample> {
    one(FLOATS.into_iter(), Values::Between(low, high))
}

/// One tensor of any number.
pub fn unary_number() -> Vec<Sample> {
    one(numbers(), Values::Normal)
}

/// One tensor of any dtype.
pub fn unary_any() -> Vec<Sample> {
    one(DType::ALL.into_iter(), Values::Normal)
}

fn two(right: Values) -> Vec<Sample> {
    let of = |a, left: &[usize], b, shape: &[usize]| {
        let types = [TensorType::new(a, left), TensorType::new(b, shape)];
        Sample::of(&types, Attrs::None).with(1, right)
    };
    let mut all: Vec<Sample> = numbers().map(|dtype| of(dtype, &[2, 3], dtype, &[2, 3])).collect();
    for (left, shape) in [
        (&[][..], &[][..]),
        (&[2, 3], &[3]),
        (&[3], &[2, 3]),
        (&[4, 1, 3], &[5, 1]),
        (&[0, 3], &[1]),
        (&[1023], &[1023]),
        (&[1025], &[1]),
        (&[3, 700], &[3, 1]),
    ] {
        all.push(of(DType::F32, left, DType::F32, shape));
    }
    all.push(of(DType::F16, &[2, 3], DType::F32, &[3]));
    all.push(of(DType::U8, &[2, 3], DType::I16, &[2, 1]));
    all
}

/// Two tensors of any number.
pub fn binary_number() -> Vec<Sample> {
    two(Values::Normal)
}

/// Two tensors of any number, the right one away from 0.
pub fn binary_divisor() -> Vec<Sample> {
    two(Values::Between(1.0, 4.0))
}
