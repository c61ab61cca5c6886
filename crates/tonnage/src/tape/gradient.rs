//! A gradient as it comes off a tape: dense, some rows of a table, or none.

use tonnage_core::attrs::Attrs;
use tonnage_core::{Bytes, Result, Source, TensorType};
use tonnage_ops::index;

use super::tape_error;
use crate::dispatch::apply1;
use crate::ops::Operand;
use crate::tensor::Tensor;

/// A gradient as it comes off a tape.
///
/// ```
/// use tonnage::{Elementwise, Gradient, GradientTape, Variable, tensor, zeros};
/// let (table, other) = (Variable::new("table", zeros([1000, 2])?)?, Variable::new("other", zeros([2])?)?);
/// let mut tape = GradientTape::new();
/// let loss = table.read()?.gather(&tensor([3i64, 5])?, 0)?.exp()?.sum_all()?;
/// let [by_table, by_other] = tape.gradient(&loss, &[&table, &other])?;
/// assert!(matches!(by_table, Gradient::Rows(_))); // two rows, not a thousand
/// assert!(by_other.is_unconnected());
/// table.assign_sub(&by_table)?; // writes those rows
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub enum Gradient {
    /// The target does not depend on the source.
    Unconnected,
    /// Every element.
    Dense(Tensor),
    /// Some rows along the first axis; all others are zero.
    Rows(IndexedSlices),
}

/// Some rows of a gradient along its first axis; all others are zero. Rows of the same index add up.
///
/// The gradient of [`Tensor::gather`] is one: it follows the batch, not the table. Sums and scaled ones
/// stay rows, and [`Variable::assign_sub`](crate::Variable::assign_sub) updates just those rows. Making
/// one whole is an op of its own, `rows_to_dense`, so that reports and plans say where that happens and
/// how many bytes it takes.
#[derive(Debug, Clone)]
pub struct IndexedSlices {
    parts: Vec<(Tensor, Tensor)>,
    ty: TensorType,
}

impl IndexedSlices {
    pub(crate) fn from_parts(ty: TensorType, parts: Vec<(Tensor, Tensor)>) -> IndexedSlices {
        IndexedSlices { parts, ty }
    }

    /// Indices and values: pieces that add up.
    pub fn parts(&self) -> impl Iterator<Item = (&Tensor, &Tensor)> {
        self.parts.iter().map(|(indices, values)| (indices, values))
    }

    /// The type of the whole.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// What indices and values take; nothing for those that are recipes, or not computed yet.
    pub fn bytes(&self) -> Bytes {
        let reserved = |t: &Tensor| t.array("rows").map_or(Bytes::ZERO, |a| a.storage().reserved());
        self.parts.iter().map(|(i, v)| reserved(i) + reserved(v)).sum()
    }

    /// Both, as one.
    #[must_use]
    pub fn plus(mut self, other: IndexedSlices) -> IndexedSlices {
        self.parts.extend(other.parts);
        self
    }

    /// Every row times a number or a scalar tensor.
    #[track_caller]
    pub fn scale(&self, by: impl Operand + Clone) -> Result<IndexedSlices> {
        let scaled = |(i, v): &(Tensor, Tensor)| Ok((i.clone(), v.mul(by.clone())?));
        let parts = self.parts.iter().map(scaled).collect::<Result<_>>()?;
        Ok(IndexedSlices { parts, ty: self.ty.clone() })
    }

    /// The whole, with zeros for all other rows: takes the bytes of the table.
    #[track_caller]
    pub fn dense(&self) -> Result<Tensor> {
        let source = Source::here();
        let mut sum: Option<Tensor> = None;
        for (indices, values) in &self.parts {
            sum = Some(match sum {
                Some(sum) => sum.scatter_add(indices, values)?,
                None => {
                    let inputs = smallvec::smallvec![indices.into(), values.into()];
                    let attrs = Attrs::Shape(self.ty.shape.clone());
                    apply1(&index::rows_to_dense::ROWS_TO_DENSE, inputs, attrs, source)?
                }
            });
        }
        match sum {
            Some(sum) => Ok(sum),
            None => crate::make::zeros_of(&self.ty, source),
        }
    }
}

impl Gradient {
    /// As one tensor; rows are added into zeros. An error where there is none.
    #[track_caller]
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Gradient::Dense(tensor) => Ok(tensor.clone()),
            Gradient::Rows(rows) => rows.dense(),
            Gradient::Unconnected => Err(unconnected(Source::here())),
        }
    }

    /// As one tensor, zeros where there is none.
    #[track_caller]
    pub fn or_zeros(&self, like: &Tensor) -> Result<Tensor> {
        match self {
            Gradient::Unconnected => crate::make::zeros_of(&like.ty(), Source::here()),
            other => other.tensor(),
        }
    }

    pub(super) fn or_zeros_of(self, ty: &TensorType, source: Source) -> Result<Gradient> {
        match self {
            Gradient::Unconnected => Ok(Gradient::Dense(crate::make::zeros_of(ty, source)?)),
            other => Ok(other),
        }
    }

    /// Whether the target does not depend on the source.
    pub fn is_unconnected(&self) -> bool {
        matches!(self, Gradient::Unconnected)
    }

    /// The sum of two; rows stay rows.
    #[track_caller]
    pub fn plus(self, other: Gradient) -> Result<Gradient> {
        use Gradient::{Dense, Rows, Unconnected};
        Ok(match (self, other) {
            (Unconnected, one) | (one, Unconnected) => one,
            (Dense(a), Dense(b)) => Dense((a + b)?),
            (Rows(a), Rows(b)) => Rows(a.plus(b)),
            (Dense(sum), Rows(rows)) | (Rows(rows), Dense(sum)) => {
                let mut sum = sum;
                for (indices, values) in &rows.parts {
                    sum = sum.scatter_add(indices, values)?;
                }
                Dense(sum)
            }
        })
    }

    /// Times a number or a scalar tensor; rows stay rows.
    #[track_caller]
    pub fn scale(&self, by: impl Operand + Clone) -> Result<Gradient> {
        Ok(match self {
            Gradient::Unconnected => Gradient::Unconnected,
            Gradient::Dense(tensor) => Gradient::Dense(tensor.mul(by)?),
            Gradient::Rows(rows) => Gradient::Rows(rows.scale(by)?),
        })
    }
}

pub(crate) fn unconnected(source: Source) -> tonnage_core::Error {
    let what = "the target does not depend on this source";
    tape_error(what, "use it in the target, or take `gradient_or_zeros`").at(source)
}
