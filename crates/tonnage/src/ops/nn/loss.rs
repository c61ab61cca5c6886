//! Losses: how far predictions are from what they should be.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Result, Scalar, Source};
use tonnage_ops::nn::softmax::{cross_entropy, cross_entropy_dense};

use crate::dispatch::apply;
use crate::tensor::Tensor;

impl Tensor {
    /// For each row of logits `[..., classes]`, how surprised it is by its label: `-log_softmax(logits)[label]`. A label out of
    /// range is an error. Probabilities are never made, and none are kept for the gradient: just the logits, and a number
    /// a row.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let logits = tensor([[0.0f32, 0.0], [3.0, -3.0]])?;
    /// let losses = logits.sparse_cross_entropy(&tensor([0, 1])?)?;
    /// assert!((losses.to_vec::<f32>()?[0] - 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn sparse_cross_entropy(&self, labels: &Tensor) -> Result<Tensor> {
        self.sparse_cross_entropy_smoothed(labels, 0.0)
    }

    /// The same where a share of each label is spread evenly over all classes.
    #[track_caller]
    pub fn sparse_cross_entropy_smoothed(&self, labels: &Tensor, share: f64) -> Result<Tensor> {
        let attrs = Attrs::Smoothing(Scalar::Float(share));
        let inputs = smallvec![self.into(), labels.into()];
        let op = &cross_entropy::CROSS_ENTROPY;
        Ok(apply(op, inputs, attrs, Source::here())?.swap_remove(0))
    }

    /// For each row of logits `[..., classes]`, how surprised it is by probabilities: `-sum(targets * log_softmax(logits))`.
    #[track_caller]
    pub fn cross_entropy(&self, targets: &Tensor) -> Result<Tensor> {
        self.cross_entropy_smoothed(targets, 0.0)
    }

    /// The same where a share of the probabilities is spread evenly over all classes.
    #[track_caller]
    pub fn cross_entropy_smoothed(&self, targets: &Tensor, share: f64) -> Result<Tensor> {
        let attrs = Attrs::Smoothing(Scalar::Float(share));
        let inputs = smallvec![self.into(), targets.into()];
        let op = &cross_entropy_dense::CROSS_ENTROPY_DENSE;
        Ok(apply(op, inputs, attrs, Source::here())?.swap_remove(0))
    }
}
