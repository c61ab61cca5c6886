//! Pooling, channel by channel.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::ErrorKind;
use tonnage_core::{Result, Source, window};
use tonnage_ops::nn;

use crate::dispatch::apply1;
use crate::tensor::Tensor;
use crate::window::Pool;

impl Tensor {
    /// The largest in each window of `[batch, ..., channels]`, over one to three spatial axes. Padding never wins; NaN
    /// does, so that it shows. The gradient goes to the first of equal elements.
    ///
    /// ```
    /// use tonnage::{Pool, range};
    /// let image = range(0.0f32, 16.0, 1.0)?.reshape(&[1, 4, 4, 1])?;
    /// let largest = image.max_pool(&Pool::of(2))?;
    /// assert_eq!(largest.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn max_pool(&self, windows: &Pool) -> Result<Tensor> {
        let source = Source::here();
        let window = self.windows("max_pool", windows).map_err(|e| e.at(source))?;
        let attrs = Attrs::Window(Box::new(window));
        apply1(&nn::pool::max::MAX_POOL, smallvec![self.into()], attrs, source)
    }

    /// Windows over this image.
    fn windows(&self, op: &'static str, windows: &Pool) -> Result<window::Window> {
        let (shape, rank) = (self.shape(), self.rank());
        if !(3..=5).contains(&rank) {
            let expected = "3 to 5 ([batch, ..., channels])".into();
            return Err(ErrorKind::RankMismatch { op, shape, expected }.into());
        }
        windows.over(op, &shape[1..rank - 1])
    }
}
