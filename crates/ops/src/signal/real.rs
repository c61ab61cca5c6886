//! What `rfft` and `irfft` share: transforms of real rows, of which half the elements say everything.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{DType, Dim, Shape, TensorType};

use crate::shape::concat::CONCAT;
use crate::shape::fill::FILL;

/// How many elements say everything about a real row.
pub fn bins(n: &Dim) -> Dim {
    n.divided_by(&Dim::Known(2)).plus(&Dim::Known(1))
}

/// How often each bin stands in the whole transform: twice, but for those that are their own mirror
/// images.
pub fn bin_multiplicity(
    e: &mut dyn Emit,
    op: &'static str,
    n: &Dim,
    dtype: DType,
) -> Result<Value> {
    let Some(n) = n.known() else {
        let what = format!("the gradient of a row of {n} elements");
        return Err(bad_argument(op, what, "fix the length in the signature"));
    };
    let ends = if n.is_multiple_of(2) && n > 1 { [1, 1] } else { [1, 0] };
    let between = (n / 2 + 1) - ends[0] - ends[1];
    let mut parts = Vec::new();
    for (value, count) in [(1, ends[0]), (2, between), (1, ends[1])] {
        if count > 0 {
            let attrs = Attrs::Fill { value: value.into(), dtype, shape: Shape::from([count]) };
            parts.push(e.apply(&FILL, Vec::new(), attrs)?);
        }
    }
    match parts.len() {
        1 => Ok(parts.swap_remove(0)),
        count => e.apply(&CONCAT, parts, Attrs::Join { axis: 0, parts: count }),
    }
}

/// The type with another last axis.
pub fn with_last(ty: &TensorType, last: Dim) -> TensorType {
    let mut made = ty.clone();
    if let Some(axis) = made.shape.rank().checked_sub(1) {
        made.shape[axis] = last;
    }
    made
}
