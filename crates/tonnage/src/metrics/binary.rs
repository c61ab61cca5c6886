//! Of yes and no: what was said rightly and wrongly, from which precision and recall follow.

use tonnage_core::{DType, Result};

use super::Metric;
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// Counts of the four cases. As a [`Metric`] it is the harmonic mean of precision and recall (F1).
///
/// ```
/// use tonnage::metrics::{Binary, Metric};
/// let mut found = Binary::new(0.5);
/// let truth = tonnage::tensor([true, true, false, true])?;
/// found.update(&tonnage::tensor([0.9f32, 0.2, 0.7, 0.5])?, &truth)?;
/// assert_eq!((found.precision(), found.recall()), (0.5, 1.0 / 3.0));
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binary {
    threshold: f64,
    /// Said yes, and it was.
    pub right_yes: u64,
    /// Said yes, and it was not.
    pub wrong_yes: u64,
    /// Said no, and it was not.
    pub right_no: u64,
    /// Said no, and it was.
    pub wrong_no: u64,
}

impl Binary {
    /// A score over `threshold` says yes.
    pub fn new(threshold: f64) -> Binary {
        Binary { threshold, right_yes: 0, wrong_yes: 0, right_no: 0, wrong_no: 0 }
    }

    /// The share of yes that was right; NaN where none was said.
    pub fn precision(&self) -> f64 {
        self.right_yes as f64 / (self.right_yes + self.wrong_yes) as f64
    }

    /// The share of what was yes that was found; NaN where nothing was.
    pub fn recall(&self) -> f64 {
        self.right_yes as f64 / (self.right_yes + self.wrong_no) as f64
    }
}

impl Metric for Binary {
    fn name(&self) -> String {
        "F1".into()
    }

    #[track_caller]
    fn update(&mut self, said: &Tensor, truth: &Tensor) -> Result<()> {
        let (said, truth) = (said.greater(self.threshold)?, truth.cast(DType::Bool)?);
        let count = |cases: Tensor| -> Result<u64> {
            Ok(cases.cast(DType::I64)?.sum_all()?.scalar::<i64>()?.max(0) as u64)
        };
        let right_yes = count(said.logical_and(&truth)?)?;
        let (yes, is) = (count(said.identity()?)?, count(truth.identity()?)?);
        let all = said.shape().count().unwrap_or(0) as u64;
        self.right_yes += right_yes;
        self.wrong_yes += yes - right_yes;
        self.wrong_no += is - right_yes;
        self.right_no += all + right_yes - yes - is;
        Ok(())
    }

    fn value(&self) -> f64 {
        let right = 2.0 * self.right_yes as f64;
        right / (right + (self.wrong_yes + self.wrong_no) as f64)
    }

    fn reset(&mut self) {
        *self = Binary::new(self.threshold);
    }
}
