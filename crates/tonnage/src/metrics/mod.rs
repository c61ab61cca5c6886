//! How well a model does, over batches as they come, in a few numbers of memory.
//!
//! A metric is told of a batch at a time what was said and what is true, and knows the figure for all of them. None keeps the batches.

mod auc;
mod binary;
mod classes;

pub use auc::Auc;
pub use binary::Binary;
pub use classes::{Accuracy, TopK};

use tonnage_core::{DType, Result};

use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// A figure over batches.
pub trait Metric {
    /// What it is called in logs.
    fn name(&self) -> String;

    /// One more batch: what was said, and what is true.
    ///
    /// # Errors
    /// Where their shapes do not go together.
    fn update(&mut self, said: &Tensor, truth: &Tensor) -> Result<()>;

    /// The figure for all batches since the start; NaN where there was none.
    fn value(&self) -> f64;

    /// Forgets all batches.
    fn reset(&mut self);
}

/// The mean of numbers, or of any other metric's parts: with weights where batches differ in size.
///
/// ```
/// use tonnage::metrics::Mean;
/// let mut loss = Mean::default();
/// loss.add(&tonnage::tensor([1.0f32, 2.0])?)?;
/// loss.add(&tonnage::tensor([6.0f32])?)?;
/// assert_eq!(loss.value(), 3.0);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    /// All elements of a tensor.
    #[track_caller]
    pub fn add(&mut self, numbers: &Tensor) -> Result<()> {
        let count = numbers.shape().count().unwrap_or(0) as f64;
        let sum = numbers.cast(DType::F64)?.sum_all()?.scalar::<f64>()?;
        self.weigh(sum, count);
        Ok(())
    }

    /// A sum of `count` numbers.
    pub fn weigh(&mut self, sum: f64, count: f64) {
        self.sum += sum;
        self.count += count;
    }

    /// The mean; NaN of nothing.
    pub fn value(&self) -> f64 {
        self.sum / self.count
    }
}
