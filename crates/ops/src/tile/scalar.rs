//! Scalars as elements.

use tonnage_core::{DType, FromScalar, Scalar, with_element};

/// A scalar as the element that it stands for, and back: two scalars that are the same element are equal.
pub fn element(value: Scalar, dtype: DType) -> Scalar {
    with_element!(dtype, T => T::from_scalar(value).to_scalar())
}
