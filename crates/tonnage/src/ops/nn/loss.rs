//! Losses: how far predictions are from what they should be.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Result, Scalar, Source};
use tonnage_ops::nn::softmax::{cross_entropy, cross_entropy_dense};

use super::super::Elementwise;
use crate::dispatch::{OpContext, apply};
use crate::tensor::Tensor;

impl Tensor {
    /// For each row of logits `[..., classes]`, how surprised it is by its label: `-log_softmax(logits)[label]`. A label out of
    /// range is an error. Probabilities are never made, and none are saved for the gradient: just the logits.
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
        let losses = apply(op, inputs, attrs, OpContext::at(Source::here()))?.swap_remove(0);
        if losses.dtype() == self.dtype() { Ok(losses) } else { losses.cast(self.dtype()) }
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
        Ok(apply(op, inputs, attrs, OpContext::at(Source::here()))?.swap_remove(0))
    }

    /// For each logit, how surprised it is by the probability of its class: `-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))`,
    /// computed so that nothing overflows and a small loss keeps its digits.
    #[track_caller]
    pub fn sigmoid_cross_entropy(&self, targets: &Tensor) -> Result<Tensor> {
        // The difference `softplus(x) - t x` would cancel where the logit is right; for probabilities these terms have one
        // sign.
        let (yes, no) = ((-self)?.softplus()?, self.softplus()?);
        (targets * yes)? + ((1.0 - targets)? * no)?
    }

    /// The mean of squared differences.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let error = tensor([1.0f32, 2.0])?.mean_squared_error(&tensor([1.0f32, 4.0])?)?;
    /// assert_eq!(error.scalar::<f32>()?, 2.0);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn mean_squared_error(&self, targets: &Tensor) -> Result<Tensor> {
        self.squared_difference(targets)?.mean_all()
    }

    /// The mean of absolute differences.
    #[track_caller]
    pub fn mean_absolute_error(&self, targets: &Tensor) -> Result<Tensor> {
        (self - targets)?.abs()?.mean_all()
    }

    /// The mean of differences that count half their square up to `delta` and go on straight from there.
    #[track_caller]
    pub fn huber_loss(&self, targets: &Tensor, delta: f64) -> Result<Tensor> {
        let off = (self - targets)?.abs()?;
        // With r = min(off, delta): r (off - r / 2).
        let near = off.minimum(delta)?;
        (&near * (off - (&near * 0.5)?)?)?.mean_all()
    }

    /// The mean of `max(0, 1 - t x)`, for labels `t` of -1 and 1.
    #[track_caller]
    pub fn hinge_loss(&self, labels: &Tensor) -> Result<Tensor> {
        (1.0 - (self * labels)?)?.relu()?.mean_all()
    }

    /// For each row of probabilities `[..., classes]`, how far others are from it: `sum(p log(p / q))`, where a probability of 0
    /// counts nothing.
    #[track_caller]
    pub fn kl_divergence(&self, others: &Tensor) -> Result<Tensor> {
        (self.xlogy(self)? - self.xlogy(others)?)?.sum(-1)
    }

    /// The cosine of the angle between vectors along an axis; 0 where one has no length to speak of.
    #[track_caller]
    pub fn cosine_similarity(&self, other: &Tensor, axis: i64) -> Result<Tensor> {
        let (a, b) = (self.l2_normalize(axis, 1e-12)?, other.l2_normalize(axis, 1e-12)?);
        (a * b)?.sum(axis)
    }
}
