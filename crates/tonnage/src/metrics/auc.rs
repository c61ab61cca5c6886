//! The area under the curve of right yes over wrong yes: how likely a yes scores higher than a no.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result};

use super::Metric;
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// From scores of 0 to 1, counted in bins: two scores in one bin count as equal, half right. With `n` bins the figure is off by at
/// most half the share of pairs that meet in a bin.
///
/// ```
/// use tonnage::metrics::{Auc, Metric};
/// let mut auc = Auc::new(1000);
/// let truth = tonnage::tensor([true, false, true, false])?;
/// auc.update(&tonnage::tensor([0.9f32, 0.5, 0.4, 0.1])?, &truth)?;
/// assert_eq!(auc.value(), 0.75);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Auc {
    /// How many no, then how many yes, in each bin.
    counts: Vec<u64>,
}

impl Auc {
    /// With `bins` bins; at least 2.
    pub fn new(bins: usize) -> Auc {
        Auc { counts: vec![0; 2 * bins.max(2)] }
    }

    fn bins(&self) -> usize {
        self.counts.len() / 2
    }
}

impl Metric for Auc {
    fn name(&self) -> String {
        "AUC".into()
    }

    #[track_caller]
    fn update(&mut self, said: &Tensor, truth: &Tensor) -> Result<()> {
        if said.shape() != truth.shape() {
            let what = format!("scores of {} and truths of {}", said.shape(), truth.shape());
            return Err(bad_argument("auc", what, "give one truth for each score"));
        }
        let said = said.cast(DType::F64)?;
        let within = said.greater_equal(0.0)?.logical_and(said.less_equal(1.0)?)?;
        if !within.all(crate::Axes::ALL)?.scalar::<bool>()? {
            let what = "a score that is not between 0 and 1".to_string();
            return Err(bad_argument("auc", what, "take the sigmoid of logits"));
        }
        let bins = self.bins();
        let bin = said.mul(bins as f64)?.floor()?.minimum((bins - 1) as f64)?.cast(DType::I64)?;
        let truth = truth.cast(DType::Bool)?.cast(DType::I64)?.mul(bins as i64)?;
        let counts = bin.add(truth)?.reshape([-1])?.bincount(2 * bins)?;
        let counts = counts.cast(DType::I64)?.to_vec::<i64>()?;
        self.counts.iter_mut().zip(counts).for_each(|(sum, new)| *sum += new.max(0) as u64);
        Ok(())
    }

    fn value(&self) -> f64 {
        let (no, yes) = self.counts.split_at(self.bins());
        let (mut below, mut right) = (0u64, 0.0);
        for (no, yes) in no.iter().zip(yes) {
            right += *yes as f64 * (below as f64 + *no as f64 / 2.0);
            below += no;
        }
        right / (below as f64 * yes.iter().sum::<u64>() as f64)
    }

    fn reset(&mut self) {
        self.counts.fill(0);
    }
}
