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

/// The same with other attributes.
pub fn with_attrs(samples: Vec<Sample>, attrs: Attrs) -> Vec<Sample> {
    samples.into_iter().map(|sample| Sample { attrs: attrs.clone(), ..sample }).collect()
}

/// One tensor of booleans.
pub fn unary_bool() -> Vec<Sample> {
    one([DType::Bool].into_iter(), Values::Normal)
        .into_iter()
        .map(|sample| of_dtype(sample, DType::Bool))
        .collect()
}

/// One tensor of any integer.
pub fn unary_integer() -> Vec<Sample> {
    let integers = DType::ALL.into_iter().filter(|d| d.is_integer());
    let mut all = one(integers, Values::Normal);
    for sample in &mut all {
        if sample.inputs[0].ty.dtype.is_float() {
            sample.inputs[0].ty.dtype = DType::I32;
        }
    }
    all
}

fn of_dtype(mut sample: Sample, dtype: DType) -> Sample {
    sample.inputs.iter_mut().for_each(|input| input.ty.dtype = dtype);
    sample
}

/// Two tensors of any number with values in ranges.
pub fn binary_between(left: (f64, f64), right: (f64, f64)) -> Vec<Sample> {
    let between = |(low, high)| Values::Between(low, high);
    two(between(right)).into_iter().map(|sample| sample.with(0, between(left))).collect()
}

/// Two float tensors with values in ranges.
pub fn binary_float(left: (f64, f64), right: (f64, f64)) -> Vec<Sample> {
    let float = |sample: &Sample| sample.inputs.iter().all(|input| input.ty.dtype.is_float());
    binary_between(left, right).into_iter().filter(float).collect()
}

/// Two tensors of booleans.
pub fn binary_bool() -> Vec<Sample> {
    let float = |sample: &Sample| sample.inputs[0].ty.dtype == DType::F32;
    let samples = two(Values::Normal).into_iter().filter(float);
    samples.map(|sample| of_dtype(sample, DType::Bool)).collect()
}

fn integers(right: Values) -> Vec<Sample> {
    let mut all = two(right);
    for sample in &mut all {
        if sample.inputs.iter().any(|input| input.ty.dtype.is_float()) {
            *sample = of_dtype(sample.clone(), DType::I32);
        }
    }
    all
}

/// Two tensors of any integer.
pub fn binary_integer() -> Vec<Sample> {
    integers(Values::Normal)
}

/// Two tensors of any integer, the right one a number of places.
pub fn binary_shift() -> Vec<Sample> {
    integers(Values::Below(10))
}
