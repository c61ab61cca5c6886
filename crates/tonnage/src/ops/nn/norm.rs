//! Normalization: numbers brought to a mean of 0 and a deviation of 1.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, bad_argument};
use tonnage_core::{Dim, Error, Result, Scalar, Shape, Source};
use tonnage_ops::{nn, shape};

use super::super::Elementwise;
use crate::dispatch::{OpContext, TensorArg, apply, apply1};
use crate::make;
use crate::tensor::Tensor;

/// What [`Tensor::batch_norm`] gives: the batch normalized, and the statistics that it was normalized by.
#[derive(Debug, Clone)]
pub struct BatchNormOutput {
    /// Of the shape of the batch.
    pub output: Tensor,
    /// The mean of each channel.
    pub mean: Tensor,
    /// The variance of each channel: the mean of squared differences from the mean.
    pub variance: Tensor,
}

fn attrs(epsilon: f64, centered: bool, groups: usize) -> Attrs {
    Attrs::Normalize { epsilon: Scalar::Float(epsilon), centered, groups }
}

fn reshape(x: TensorArg, to: Shape, source: Source) -> Result<Tensor> {
    apply1(&shape::reshape::RESHAPE, smallvec![x], Attrs::Shape(to), source)
}

impl Tensor {
    /// Each row along the last axis brought to a mean of 0 and a deviation of 1, then scaled and shifted, by a number for
    /// each column: `(x - mean) / sqrt(variance + epsilon) * scale + bias`. For the gradient the input is saved, and neither
    /// its statistics nor the result.
    ///
    /// ```
    /// use tonnage::{ones, tensor, zeros};
    /// let x = tensor([[1.0f32, 2.0, 3.0], [0.0, 10.0, 20.0]])?;
    /// let y = x.layer_norm(&ones([3])?, &zeros([3])?, 0.0)?;
    /// assert!((y.to_vec::<f32>()?[0] + 1.2247449).abs() < 1e-6);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm(&self, scale: &Tensor, bias: &Tensor, epsilon: f64) -> Result<Tensor> {
        let inputs = smallvec![self.into(), scale.into(), bias.into()];
        apply1(&nn::norm::layer::LAYER_NORM, inputs, attrs(epsilon, true, 1), Source::here())
    }

    /// Each row along the last axis brought to a mean square of 1, then scaled: `x / sqrt(mean(x^2) + epsilon) * scale`.
    #[track_caller]
    pub fn rms_norm(&self, scale: &Tensor, epsilon: f64) -> Result<Tensor> {
        let source = Source::here();
        let bias = make::zeros_of(&scale.ty(), source)?;
        let inputs = smallvec![self.into(), scale.into(), bias.into()];
        apply1(&nn::norm::layer::LAYER_NORM, inputs, attrs(epsilon, false, 1), source)
    }

    /// Each group of channels of each image `[batch, ..., channels]` brought to a mean of 0 and a deviation of 1, then scaled
    /// and shifted, by a number for each channel. As many groups as channels: instance normalization.
    #[track_caller]
    pub fn group_norm(
        &self,
        groups: usize,
        scale: &Tensor,
        bias: &Tensor,
        epsilon: f64,
    ) -> Result<Tensor> {
        let inputs = smallvec![self.into(), scale.into(), bias.into()];
        let attrs = attrs(epsilon, true, groups);
        let mut made =
            apply(&nn::norm::group::GROUP_NORM, inputs, attrs, OpContext::at(Source::here()))?;
        Ok(made.swap_remove(0))
    }

    /// Each channel of a batch `[..., channels]` brought to a mean of 0 and a deviation of 1 over all else, then scaled and
    /// shifted; with the statistics, for averages over batches that [`Tensor::batch_norm_by`] takes later.
    ///
    /// ```
    /// use tonnage::{ones, tensor, zeros};
    /// let x = tensor([[1.0f32, 5.0], [3.0, 5.0]])?;
    /// let made = x.batch_norm(&ones([2])?, &zeros([2])?, 0.0001)?;
    /// assert_eq!(made.mean.to_vec::<f32>()?, [2.0, 5.0]);
    /// assert_eq!(made.variance.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm(
        &self,
        scale: &Tensor,
        bias: &Tensor,
        epsilon: f64,
    ) -> Result<BatchNormOutput> {
        let (op, source) = ("batch_norm", Source::here());
        let image = self.shape();
        let (Some(channels), true) = (image.last(), image.rank() > 1) else {
            let expected = "2 or more ([..., channels])".into();
            let kind = ErrorKind::RankMismatch { op, shape: image, expected };
            return Err(Error::from(kind).at(source));
        };
        let Some(groups) = channels.known() else {
            let what = format!("a batch of {channels} channels");
            return Err(bad_argument(op, what, "fix their number in the signature").at(source));
        };
        // All of the batch is one image.
        let pixels = image[..image.rank() - 1].iter().fold(Dim::Known(1), |n, d| n.times(d));
        let flat: Shape = [Dim::Known(1), pixels, channels.clone()].into_iter().collect();
        let x = reshape(self.into(), flat, source)?;
        let inputs = smallvec![x.into(), scale.into(), bias.into()];
        let row = &nn::norm::group::GROUP_NORM;
        let mut made =
            apply(row, inputs, attrs(epsilon, true, groups), OpContext::at(source))?.into_iter();
        let each = Shape::from([groups]);
        match (made.next(), made.next(), made.next()) {
            (Some(output), Some(mean), Some(variance)) => Ok(BatchNormOutput {
                output: reshape(output.into(), image, source)?,
                mean: reshape(mean.into(), each.clone(), source)?,
                variance: reshape(variance.into(), each, source)?,
            }),
            _ => Err(bad_argument(op, "three results are missing", "report this").at(source)),
        }
    }

    /// A batch `[..., channels]` normalized by statistics that are known: averages over earlier batches.
    #[track_caller]
    pub fn batch_norm_by(
        &self,
        mean: &Tensor,
        variance: &Tensor,
        scale: &Tensor,
        bias: &Tensor,
        epsilon: f64,
    ) -> Result<Tensor> {
        let by = ((variance + epsilon)?.rsqrt()? * scale)?;
        (self - mean)?.fma(by, bias)
    }

    /// Vectors along an axis brought to a length of 1: `x / sqrt(max(sum(x^2), epsilon))`.
    #[track_caller]
    pub fn l2_normalize(&self, axis: i64, epsilon: f64) -> Result<Tensor> {
        let squares = self.square()?.sum_keep(axis)?;
        self * squares.maximum(epsilon)?.rsqrt()?
    }
}
