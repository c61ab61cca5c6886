//! One word for each element, all of one width, so that columns line up.

use tonnage_core::{DType, Scalar};

use super::float;

/// The words of elements that are printed together.
pub(super) fn words(values: &[Scalar], dtype: DType, precision: usize) -> Vec<String> {
    if dtype.is_float() {
        let floats: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
        return float::words(&floats, dtype, precision);
    }
    // Booleans are as wide as `false`, even where all are true.
    let least = if dtype == DType::Bool { 5 } else { 0 };
    let words: Vec<String> = values.iter().map(Scalar::to_string).collect();
    let width = words.iter().map(String::len).fold(least, usize::max);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// The word of an element that is printed alone: all its digits, no padding.
pub(super) fn single(value: Scalar, dtype: DType) -> String {
    match value {
        Scalar::Float(x) => float::single(x, dtype),
        other => other.to_string(),
    }
}
