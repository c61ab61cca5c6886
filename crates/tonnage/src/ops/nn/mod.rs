//! What networks are made of.

mod attention;
mod conv;
mod pool;

pub use attention::Attention;

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
}
