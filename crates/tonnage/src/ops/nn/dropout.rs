//! Dropout: elements left out at random.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result, Source};

use crate::make;
use crate::random;
use crate::tensor::Tensor;

impl Tensor {
    /// Each element 0 with a probability of `rate`, and divided by `1 - rate` otherwise, so that the expected value stays. For
    /// training: leave it out when predicting.
    ///
    /// Which elements are left out follows from a random key of a few bytes: no mask is stored, nor saved for the gradient.
    ///
    /// ```
    /// use tonnage::ones;
    /// let x = ones([1000])?;
    /// let kept = x.dropout(0.25)?.to_vec::<f32>()?;
    /// assert!(kept.iter().all(|x| *x == 0.0 || *x == 1.0 / 0.75));
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn dropout(&self, rate: f64) -> Result<Tensor> {
        let source = Source::here();
        if !(0.0..=1.0).contains(&rate) {
            let what = format!("elements are to be left out at a rate of {rate}");
            return Err(bad_argument("dropout", what, "use a rate between 0 and 1").at(source));
        }
        let draw = random::random_uniform(self.shape(), DType::F32)?;
        let kept = draw.greater_equal(rate)?;
        let nothing = make::zeros_of(&self.ty(), source)?;
        // At a rate of 1 nothing is kept, and nothing is divided by 0.
        let scaled = (self * if rate < 1.0 { 1.0 / (1.0 - rate) } else { 0.0 })?;
        kept.where_(&scaled, &nothing)
    }
}
