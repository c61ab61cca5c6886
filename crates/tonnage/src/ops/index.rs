//! Parts that are chosen by index or by a mask.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source};
use tonnage_ops::index;

use crate::dispatch::{apply, apply1};
use crate::tensor::Tensor;

impl Tensor {
    /// Rows along the first axis, by index. An index out of range is an error; its gradient stays rows.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let table = tensor([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    /// let rows = table.gather(&tensor([2i64, 0])?, 0)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self, indices: &Tensor, axis: i64) -> Result<Tensor> {
        let source = Source::here();
        let axis = self.shape().axis("gather", axis).map_err(|e| e.at(source))?;
        let inputs = smallvec![self.into(), indices.into()];
        apply1(&index::gather::GATHER, inputs, Attrs::Axis(axis), source)
    }

    /// This table with rows added along the first axis; indices may repeat. Give the table up (`self` is
    /// moved in) and it is changed in place.
    #[track_caller]
    pub fn scatter_add(self, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), indices.into(), rows.into()];
        apply1(&index::scatter_add::SCATTER_ADD, inputs, Attrs::None, Source::here())
    }

    /// This table with rows replaced along the first axis; of rows with the same index the last stays.
    #[track_caller]
    pub fn scatter_update(self, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), indices.into(), rows.into()];
        apply1(&index::scatter_update::SCATTER_UPDATE, inputs, Attrs::None, Source::here())
    }

    /// The `k` largest along the last axis, largest first, and where they were.
    #[track_caller]
    pub fn top_k(&self, k: usize) -> Result<(Tensor, Tensor)> {
        let op = &index::top_k::TOP_K;
        let mut made = apply(op, smallvec![self.into()], Attrs::Count(k), Source::here())?;
        let indices = made.pop();
        match (made.pop(), indices) {
            (Some(values), Some(indices)) => Ok((values, indices)),
            _ => Err(bad_argument(op.name, "two results are missing", "report this")),
        }
    }

    /// The elements where a boolean mask over the leading axes is true, one after the other.
    #[track_caller]
    pub fn boolean_mask(&self, mask: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), mask.into()];
        apply1(&index::boolean_mask::BOOLEAN_MASK, inputs, Attrs::None, Source::here())
    }
}
