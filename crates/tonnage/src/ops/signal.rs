//! Fourier transforms, on real and imaginary parts.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, OpDef, Result, Source};
use tonnage_ops::signal;

use crate::dispatch::{OpContext, TensorArgs, apply};
use crate::tensor::Tensor;

impl Tensor {
    /// The Fourier transform along an axis, of this as real parts and another tensor as imaginary parts: element `k` is the sum of
    /// `x[j] e^(-2 pi i j k / n)`. Any length will do.
    ///
    /// ```
    /// use tonnage::{tensor, zeros};
    /// let x = tensor([1.0f32, 0.0, 0.0, 0.0])?;
    /// let (re, im) = x.fft(&zeros([4])?, -1)?;
    /// assert_eq!(re.to_vec::<f32>()?, [1.0; 4]);
    /// let (back, _) = re.ifft(&im, -1)?;
    /// assert_eq!(back.to_vec::<f32>()?, x.to_vec::<f32>()?);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn fft(&self, imaginary: &Tensor, axis: i64) -> Result<(Tensor, Tensor)> {
        both(transformed(&signal::fft::FFT, &[self, imaginary], Attrs::None, axis, Source::here())?)
    }

    /// The inverse of [`Tensor::fft`].
    #[track_caller]
    pub fn ifft(&self, imaginary: &Tensor, axis: i64) -> Result<(Tensor, Tensor)> {
        let op = &signal::ifft::IFFT;
        both(transformed(op, &[self, imaginary], Attrs::None, axis, Source::here())?)
    }

    /// The Fourier transform of real rows along an axis: real and imaginary parts of its first `n / 2 + 1` elements, of which the
    /// others are mirror images.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([1.0f64, 2.0, 3.0, 4.0])?;
    /// let (re, im) = x.rfft(0)?;
    /// assert_eq!(re.to_vec::<f64>()?, [10.0, -2.0, -2.0]);
    /// assert_eq!(re.irfft(&im, 4, 0)?.to_vec::<f64>()?, x.to_vec::<f64>()?);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn rfft(&self, axis: i64) -> Result<(Tensor, Tensor)> {
        both(transformed(&signal::rfft::RFFT, &[self], Attrs::None, axis, Source::here())?)
    }

    /// The inverse of [`Tensor::rfft`]: real rows of `n` elements.
    #[track_caller]
    pub fn irfft(&self, imaginary: &Tensor, n: impl Into<Dim>, axis: i64) -> Result<Tensor> {
        let attrs = Attrs::Shape([n.into()].into_iter().collect());
        let op = &signal::irfft::IRFFT;
        let mut made = transformed(op, &[self, imaginary], attrs, axis, Source::here())?;
        match made.pop() {
            Some(made) => Ok(made),
            None => Err(bad_argument(op.name, "a result is missing", "report this")),
        }
    }
}

fn both(made: Vec<Tensor>) -> Result<(Tensor, Tensor)> {
    match <[Tensor; 2]>::try_from(made) {
        Ok([re, im]) => Ok((re, im)),
        Err(_) => Err(bad_argument("fft", "two results are missing", "report this")),
    }
}

/// Runs an op along an axis as if it were the last one: its inputs and results are looked at in another order of axes.
fn transformed(
    op: &'static OpDef,
    parts: &[&Tensor],
    attrs: Attrs,
    axis: i64,
    source: Source,
) -> Result<Vec<Tensor>> {
    let axis = parts[0].shape().axis(op.name, axis).map_err(|e| e.at(source))?;
    let mut order: Vec<i64> = (0..parts[0].rank() as i64).collect();
    let last = order.len() - 1;
    if axis == last || parts.iter().any(|part| part.rank() != order.len()) {
        let inputs: TensorArgs = parts.iter().map(|part| (*part).into()).collect();
        return Ok(apply(op, inputs, attrs, OpContext::at(source))?.into_vec());
    }
    order.swap(axis, last);
    let transposed = parts.iter().map(|part| part.transpose(&order)).collect::<Result<Vec<_>>>()?;
    let inputs: TensorArgs = transposed.iter().map(|part| part.into()).collect();
    let made = apply(op, inputs, attrs, OpContext::at(source))?;
    made.iter().map(|made| made.transpose(&order)).collect()
}
