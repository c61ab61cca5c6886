//! What a variable can grow or shrink by: a tensor, or a gradient as it comes off a tape.

use tonnage_core::{Result, Source};

use crate::tape::{Gradient, IndexedSlices, unconnected};
use crate::tensor::Tensor;

/// What a variable can grow or shrink by: a tensor, or a gradient. One that is rows changes just those rows.
///
/// ```
/// use tonnage::{GradientTape, Variable, tensor};
/// let table = Variable::new("table", tensor([[1.0f32, 1.0], [2.0, 2.0], [3.0, 3.0]])?)?;
/// let mut tape = GradientTape::new();
/// let y = table.read()?.gather(&tensor([2i64])?, 0)?.sum_all()?;
/// table.assign_sub(&tape.gradient(&y, &table)?.scale(0.5)?)?; // touches row 2 alone
/// assert_eq!(table.read()?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0, 2.5, 2.5]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub trait Delta {
    #[doc(hidden)]
    fn parts(&self, source: Source) -> Result<DeltaParts<'_>>;
}

#[doc(hidden)]
pub enum DeltaParts<'a> {
    Whole(&'a Tensor),
    Rows(&'a IndexedSlices),
}

impl Delta for Tensor {
    fn parts(&self, _: Source) -> Result<DeltaParts<'_>> {
        Ok(DeltaParts::Whole(self))
    }
}

impl Delta for IndexedSlices {
    fn parts(&self, _: Source) -> Result<DeltaParts<'_>> {
        Ok(DeltaParts::Rows(self))
    }
}

impl Delta for Gradient {
    fn parts(&self, source: Source) -> Result<DeltaParts<'_>> {
        match self {
            Gradient::Dense(tensor) => Ok(DeltaParts::Whole(tensor)),
            Gradient::Rows(rows) => Ok(DeltaParts::Rows(rows)),
            Gradient::Unconnected => Err(unconnected(source)),
        }
    }
}
