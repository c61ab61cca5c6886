//! What networks are made of.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Result, Source};
use tonnage_ops::nn;

use crate::dispatch::apply1;
use crate::tensor::Tensor;

impl Tensor {
    /// Positive numbers that add up to 1 along an axis.
    #[track_caller]
    pub fn softmax(&self, axis: i64) -> Result<Tensor> {
        let source = Source::here();
        let axis = self.shape().axis("softmax", axis).map_err(|e| e.at(source))?;
        apply1(&nn::softmax::SOFTMAX, smallvec![self.into()], Attrs::Axis(axis), source)
    }

    /// The largest in each window of `[batch, height, width, channels]`.
    #[track_caller]
    pub fn max_pool(
        &self,
        size: [usize; 2],
        stride: [usize; 2],
        padding: [[usize; 2]; 2],
    ) -> Result<Tensor> {
        let attrs = Attrs::Window { size, stride, padding };
        apply1(&nn::max_pool::MAX_POOL, smallvec![self.into()], attrs, Source::here())
    }
}
