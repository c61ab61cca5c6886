//! Pooling, channel by channel.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::ErrorKind;
use tonnage_core::{Error, Result, Shape, Source, window};
use tonnage_ops::nn;

use crate::dispatch::apply1;
use crate::part::Axes;
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

    /// The mean of each window of `[batch, ..., channels]`, over one to three spatial axes. Padding is left out: a mean at
    /// the edge is over fewer elements, unless the windows [count padding](Pool::count_padding).
    ///
    /// ```
    /// use tonnage::{Padding, Pool, range};
    /// let image = range(1.0f32, 4.0, 1.0)?.reshape(&[1, 3, 1])?;
    /// let pairs = Pool::of(2).padding(Padding::Same);
    /// assert_eq!(image.avg_pool(&pairs)?.to_vec::<f32>()?, [1.5, 3.0]);
    /// assert_eq!(image.avg_pool(&pairs.count_padding())?.to_vec::<f32>()?, [1.5, 1.5]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn avg_pool(&self, windows: &Pool) -> Result<Tensor> {
        let source = Source::here();
        let window = self.windows("avg_pool", windows).map_err(|e| e.at(source))?;
        let counts_padding = windows.counts_padding();
        let average = window::Average { window, counts_padding, image: Shape::scalar() };
        let attrs = Attrs::Average(Box::new(average));
        apply1(&nn::pool::avg::AVG_POOL, smallvec![self.into()], attrs, source)
    }

    /// The mean of each channel of each image: `[batch, ..., channels]` to `[batch, channels]`.
    #[track_caller]
    pub fn global_avg_pool(&self) -> Result<Tensor> {
        self.mean(self.spatial("global_avg_pool")?)
    }

    /// The largest of each channel of each image: `[batch, ..., channels]` to `[batch, channels]`.
    #[track_caller]
    pub fn global_max_pool(&self) -> Result<Tensor> {
        self.max(self.spatial("global_max_pool")?)
    }

    /// The axes between batch and channels.
    #[track_caller]
    fn spatial(&self, op: &'static str) -> Result<Axes> {
        if self.rank() > 2 {
            let axes: Vec<i64> = (1..self.rank() as i64 - 1).collect();
            return Ok(Axes::from(&axes[..]));
        }
        let expected = "3 or more ([batch, ..., channels])".into();
        let kind = ErrorKind::RankMismatch { op, shape: self.shape(), expected };
        Err(Error::from(kind).at(Source::here()))
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
