//! Clipping gradients: by value, by norm, and by the norm of all of them. Rows stay rows.

use tonnage_core::{DType, Result, Source};
use tonnage_ops::index;

use super::gradient::{Gradient, IndexedSlices};
use crate::dispatch::apply1;
use crate::make;
use crate::ops::{Elementwise, concat};
use crate::tensor::Tensor;

impl IndexedSlices {
    /// The same gradient in one piece, with rows of the same index added up: the sum stands where the index
    /// first occurs, and zeros where it occurs again. So what is not linear, such as a norm, can be taken of
    /// its values. Takes as many bytes as the values.
    ///
    /// ```
    /// use tonnage::{Gradient, GradientTape, Variable, ones, tensor};
    /// let table = Variable::new("table", ones([1000, 2])?)?;
    /// let mut tape = GradientTape::new();
    /// let y = table.read()?.gather(&tensor([7i64, 3, 7])?, 0)?.sum_all()?;
    /// let Gradient::Rows(rows) = tape.gradient(&y, &table)? else { unreachable!() };
    /// let merged = rows.merged()?;
    /// let (indices, values) = merged.parts().next().unwrap();
    /// assert_eq!(indices.to_vec::<i64>()?, [7, 3, 7]);
    /// assert_eq!(values.to_vec::<f32>()?, [2.0, 2.0, 1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn merged(&self) -> Result<IndexedSlices> {
        let source = Source::here();
        let Some((index, _, sums)) = self.sums(source)? else { return Ok(self.clone()) };
        Ok(IndexedSlices::from_parts(self.ty().clone(), vec![(index, sums)]))
    }

    /// Indices, and the whole sum of an index wherever it occurs: what an update that is not linear is computed
    /// from, so that a row that occurs twice becomes the same both times.
    pub(crate) fn whole_sums(&self, source: Source) -> Result<Option<(Tensor, Tensor)>> {
        let Some((index, first, sums)) = self.sums(source)? else { return Ok(None) };
        Ok(Some((index, sums.gather(&first, 0)?)))
    }

    /// Indices, where each last occurs, and rows with the whole sum there and zeros where it occurs before: of rows that are put where
    /// equal indices say, the last one stays. None where how many there are is not known.
    pub(crate) fn last_sums(&self, source: Source) -> Result<Option<(Tensor, Tensor, Tensor)>> {
        let Some((index, rows)) = self.flat()? else { return Ok(None) };
        let Some(count) = index.shape().elements().known() else { return Ok(None) };
        // Where an index last occurs is where it first does from behind.
        let backwards = self.first_of(&index.reverse(0)?, source)?.reverse(0)?;
        let last = ((count as i64 - 1) - &backwards)?;
        let sums = make::zeros_of(&rows.ty(), source)?;
        let parts: Vec<_> = self.parts().collect();
        let sums = match parts[..] {
            // Rows that lie in an order of their own, or share their elements, are read as they are.
            [(of_rows, rows)] => sums.scatter_add(&last.reshape(of_rows.shape())?, rows)?,
            _ => sums.scatter_add(&last, &rows)?,
        };
        Ok(Some((index, last, sums)))
    }

    /// All indices in one list, and their rows; none where there is no part.
    pub(crate) fn flat(&self) -> Result<Option<(Tensor, Tensor)>> {
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for (index, rows) in self.parts() {
            let count = index.shape().elements();
            let row = rows.shape()[index.rank()..].to_vec();
            let flat = std::iter::once(count.clone()).chain(row).collect::<tonnage_core::Shape>();
            indices.push(index.cast(DType::I64)?.reshape([count])?);
            values.push(rows.reshape(flat)?);
        }
        Ok(joined(indices)?.zip(joined(values)?))
    }

    /// Indices, where each first occurs, and rows with the sums at the first.
    fn sums(&self, source: Source) -> Result<Option<(Tensor, Tensor, Tensor)>> {
        let Some((index, rows)) = self.flat()? else { return Ok(None) };
        let first = self.first_of(&index, source)?;
        let sums = make::zeros_of(&rows.ty(), source)?.scatter_add(&first, &rows)?;
        Ok(Some((index, first, sums)))
    }

    /// Where each of some indices first occurs.
    fn first_of(&self, indices: &Tensor, source: Source) -> Result<Tensor> {
        // A sort looks at every digit that an index may have.
        let table = self.ty().shape.first().and_then(tonnage_core::Dim::known);
        let narrow = table.is_some_and(|rows| i32::try_from(rows).is_ok());
        let indices = indices.clone().cast(if narrow { DType::I32 } else { DType::I64 })?;
        let (first, attrs) = (smallvec::smallvec![indices.into()], tonnage_core::Attrs::None);
        apply1(&index::first_of::FIRST_OF, first, attrs, source)
    }
}

fn joined(mut parts: Vec<Tensor>) -> Result<Option<Tensor>> {
    match parts.len() {
        0 | 1 => Ok(parts.pop()),
        _ => concat(&parts.iter().collect::<Vec<_>>(), 0).map(Some),
    }
}

impl Gradient {
    /// The sum of the squares of all of its elements; 0 where there is none.
    #[track_caller]
    pub fn square_sum(&self) -> Result<Tensor> {
        match self {
            Gradient::Unconnected => make::zeros(()),
            Gradient::Dense(tensor) => tensor.square()?.sum_all(),
            Gradient::Rows(rows) => {
                let merged = rows.merged()?;
                let mut total = make::fill(
                    0.into(),
                    rows.ty().dtype,
                    tonnage_core::Shape::scalar(),
                    Source::here(),
                )?;
                for (_, values) in merged.parts() {
                    total = (total + values.square()?.sum_all()?)?;
                }
                Ok(total)
            }
        }
    }

    /// Every element clamped to between two bounds. Rows stay rows where 0 lies between them; otherwise every
    /// other row would not stay 0, and the gradient is made whole.
    #[track_caller]
    pub fn clip_by_value(&self, low: f64, high: f64) -> Result<Gradient> {
        Ok(match self {
            Gradient::Unconnected => Gradient::Unconnected,
            Gradient::Rows(rows) if low <= 0.0 && high >= 0.0 => {
                let merged = rows.merged()?;
                let clipped = |(i, v): (&Tensor, &Tensor)| Ok((i.clone(), v.clip(low, high)?));
                let parts = merged.parts().map(clipped).collect::<Result<_>>()?;
                Gradient::Rows(IndexedSlices::from_parts(rows.ty().clone(), parts))
            }
            other => Gradient::Dense(other.tensor()?.clip(low, high)?),
        })
    }

    /// Scaled down to a norm of `most` where it is larger.
    #[track_caller]
    pub fn clip_by_norm(&self, most: f64) -> Result<Gradient> {
        match self {
            Gradient::Unconnected => Ok(Gradient::Unconnected),
            other => other.scale(&shrink(&other.square_sum()?.sqrt()?, most)?),
        }
    }
}

/// `most / max(norm, most)`: 1 for what is small enough.
pub(crate) fn shrink(norm: &Tensor, most: f64) -> Result<Tensor> {
    norm.maximum(most)?.reciprocal()?.mul(most)
}

/// The norm of all gradients together.
#[track_caller]
pub fn global_norm<'g>(gradients: impl IntoIterator<Item = &'g Gradient>) -> Result<Tensor> {
    let connected = gradients.into_iter().filter(|gradient| !gradient.is_unconnected());
    norm_of(connected.map(Gradient::square_sum))
}

/// The norm of all gradients together, of which these are the sums of squares, one after another.
pub(crate) fn norm_of(squares: impl Iterator<Item = Result<Tensor>>) -> Result<Tensor> {
    let mut total: Option<Tensor> = None;
    for own in squares {
        let own = own?;
        total = Some(match total {
            Some(total) => (total + own)?,
            None => own,
        });
    }
    match total {
        Some(total) => total.sqrt(),
        None => make::zeros(()),
    }
}

/// All gradients scaled by the same factor, so that their norm together is at most `most`; and that norm as
/// it was. Rows stay rows.
///
/// ```
/// use tonnage::{Gradient, clip_by_global_norm, tensor};
/// let grads = [Gradient::Dense(tensor([3.0f32])?), Gradient::Dense(tensor([4.0f32])?)];
/// let (clipped, norm) = clip_by_global_norm(&grads, 1.0)?;
/// assert_eq!(norm.scalar::<f32>()?, 5.0);
/// assert_eq!(clipped[0].tensor()?.to_vec::<f32>()?, [0.6]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn clip_by_global_norm(gradients: &[Gradient], most: f64) -> Result<(Vec<Gradient>, Tensor)> {
    let norm = global_norm(gradients)?;
    let factor = shrink(&norm, most)?;
    let clipped = gradients.iter().map(|g| g.scale(&factor)).collect::<Result<_>>()?;
    Ok((clipped, norm))
}
