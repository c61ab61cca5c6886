//! Tensors as lists of f64, and what "equal enough" means for each dtype.
//!
//! Integers stay within 53 bits, so that f64 holds them exactly and they compare exactly.

use tonnage_core::rounding::{to_bf16, to_f16};
use tonnage_core::{DType, FromScalar, Scalar, TensorType, bf16, f16, with_element};

/// Values in logical order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plain {
    /// Of the elements.
    pub dtype: DType,
    /// Lengths of the axes.
    pub sizes: Vec<usize>,
    /// As numbers.
    pub values: Vec<f64>,
}

impl Plain {
    /// Values, converted to a dtype that holds them: floats rounded, integers wrapped around.
    pub fn new(dtype: DType, sizes: impl Into<Vec<usize>>, values: Vec<f64>) -> Plain {
        let sizes = sizes.into();
        assert_eq!(sizes.iter().product::<usize>(), values.len());
        Plain { dtype, sizes, values: values.into_iter().map(|v| held(v, dtype)).collect() }
    }

    /// Zeros of a known type.
    pub fn zeros(ty: &TensorType) -> Plain {
        let sizes = ty.shape.sizes().expect("known sizes").to_vec();
        let count = sizes.iter().product();
        Plain { dtype: ty.dtype, sizes, values: vec![0.0; count] }
    }

    /// Its type.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype, &self.sizes[..])
    }
}

/// A number as a dtype holds it: floats rounded, integers wrapped around.
pub fn held(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => value,
        DType::F32 => value as f32 as f64,
        DType::F16 => to_f16(value).to_f64(),
        DType::BF16 => to_bf16(value).to_f64(),
        _ => {
            with_element!(dtype, T => T::from_scalar(Scalar::Int(value as i128)).to_scalar().to_f64())
        }
    }
}

/// A reference's result: exact values, not rounded to the dtype, and for each the magnitude that its rounding
/// errors are a fraction of (for a sum: the sum of the absolute values).
#[derive(Debug, Clone)]
pub struct Answer {
    /// Of the elements.
    pub dtype: DType,
    /// Lengths of the axes.
    pub sizes: Vec<usize>,
    /// As numbers.
    pub values: Vec<f64>,
    /// What errors are measured against, beside the value itself.
    pub scale: Vec<f64>,
}

impl Answer {
    /// Values whose errors are measured against themselves; integers are wrapped around.
    pub fn new(dtype: DType, sizes: impl Into<Vec<usize>>, values: Vec<f64>) -> Answer {
        let scale = vec![0.0; values.len()];
        Answer::scaled(dtype, sizes, values, scale)
    }

    /// Values whose errors are measured against `scale` too.
    pub fn scaled(
        dtype: DType,
        sizes: impl Into<Vec<usize>>,
        values: Vec<f64>,
        scale: Vec<f64>,
    ) -> Answer {
        let sizes = sizes.into();
        assert_eq!(sizes.iter().product::<usize>(), values.len());
        let values = match dtype.is_float() {
            true => values,
            false => values.into_iter().map(|v| held(v, dtype)).collect(),
        };
        Answer { dtype, sizes, values, scale }
    }

    /// As an input of another reference.
    pub fn plain(self) -> Plain {
        Plain { dtype: self.dtype, sizes: self.sizes, values: self.values }
    }

    /// What differs in `got` by more than `ulps` units in the last place.
    pub fn differs(&self, got: &Plain, ulps: f64) -> Option<String> {
        if (got.dtype, &got.sizes) != (self.dtype, &self.sizes) {
            return Some(format!("got {}, not {}{:?}", got.ty(), self.dtype, self.sizes));
        }
        let off = (0..self.values.len()).find(|i| {
            let (got, expected) = (got.values[*i], self.values[*i]);
            let rounded = held(expected, self.dtype);
            // 64-bit integers that wrapped around may be rounded already, on both sides.
            let same = got == rounded || got == expected || (got.is_nan() && rounded.is_nan());
            let scale = self.scale[*i].abs().max(expected.abs());
            let near =
                (got - expected).abs() <= ulps * unit(self.dtype) * scale + least(self.dtype);
            !(same || self.dtype.is_float() && near)
        })?;
        Some(format!("element {off} is {}, not {}", got.values[off], self.values[off]))
    }
}

/// The distance from 1 to the next larger number.
pub fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f32::EPSILON as f64,
        DType::F16 => f16::EPSILON.to_f64(),
        DType::BF16 => bf16::EPSILON.to_f64(),
        _ => 0.0,
    }
}

/// The least positive number: what errors near 0 are measured in.
fn least(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(1),
        DType::F32 => f32::from_bits(1) as f64,
        DType::F16 => f16::from_bits(1).to_f64(),
        DType::BF16 => bf16::from_bits(1).to_f64(),
        _ => 0.0,
    }
}
