//! Reductions over any axes, and running ones along an axis.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{OpDef, Result, Sizes, Source};
use tonnage_ops::reduce;

use crate::dispatch::apply1;
use crate::part::Axes;
use crate::tensor::Tensor;

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $keep:ident $($all:ident)? => $op:path;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, axes: impl Into<Axes>) -> Result<Tensor> {
            self.reduce(&$op, axes.into(), false, Source::here())
        }

        #[doc = concat!("[`Tensor::", stringify!($name), "`] with the axes kept as lengths of 1.")]
        #[track_caller]
        pub fn $keep(&self, axes: impl Into<Axes>) -> Result<Tensor> {
            self.reduce(&$op, axes.into(), true, Source::here())
        }

        $(#[doc = concat!("[`Tensor::", stringify!($name), "`] over all axes.")]
        #[track_caller]
        pub fn $all(&self) -> Result<Tensor> {
            self.reduce(&$op, Axes::ALL, false, Source::here())
        })?
    )*};
}

/// Each reduction takes axes: one, several, or [`Axes::ALL`]; negative ones count from the back.
///
/// ```
/// use tonnage::{Axes, tensor};
/// let x = tensor([[1.0f32, 2.0], [3.0, 6.0]])?;
/// assert_eq!(x.mean(1)?.to_vec::<f32>()?, [1.5, 4.5]);
/// assert_eq!(x.mean_keep(-1)?.shape().to_string(), "[2, 1]");
/// assert_eq!(x.max(Axes::ALL)?.to_vec::<f32>()?, [6.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
impl Tensor {
    reductions! {
        /// Added up over axes; of nothing: 0.
        sum sum_keep sum_all => reduce::sum::SUM;
        /// The mean over axes of a float tensor; of nothing: NaN.
        mean mean_keep mean_all => reduce::mean::MEAN;
        /// Multiplied over axes; of nothing: 1.
        prod prod_keep prod_all => reduce::prod::PROD;
        /// The largest over axes; NaN wins.
        max max_keep max_all => reduce::extremum::MAX;
        /// The least over axes; NaN wins.
        min min_keep min_all => reduce::extremum::MIN;
        /// Whether one is true, over axes.
        any any_keep => reduce::truth::ANY;
        /// Whether all are true, over axes.
        all all_keep => reduce::truth::ALL;
        /// The variance over axes: the mean of the squared distances from the mean.
        var var_keep var_all => reduce::var::VAR;
        /// The standard deviation over axes: the root of the variance.
        std std_keep std_all => reduce::std_::STD;
        /// The logarithm of the sum of exponentials over axes, without overflow on the way.
        logsumexp logsumexp_keep logsumexp_all => reduce::logsumexp::LOGSUMEXP;
        /// How many are not 0 (or true) over axes, as i64.
        count_nonzero count_nonzero_keep count_nonzero_all => reduce::count_nonzero::COUNT_NONZERO;
    }

    /// Euclid's length of vectors over axes.
    #[track_caller]
    pub fn norm(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.normed(axes.into(), false, 2.0, Source::here())
    }

    /// [`Tensor::norm`] with the axes kept as lengths of 1.
    #[track_caller]
    pub fn norm_keep(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.normed(axes.into(), true, 2.0, Source::here())
    }

    /// The length of vectors over axes in another power: 1 adds up absolute values, infinity takes the largest.
    ///
    /// ```
    /// use tonnage::{Axes, tensor};
    /// let x = tensor([3.0f32, -4.0])?;
    /// assert_eq!(x.norm(0)?.to_vec::<f32>()?, [5.0]);
    /// assert_eq!(x.norm_of_power(1.0, 0)?.to_vec::<f32>()?, [7.0]);
    /// assert_eq!(x.norm_of_power(f64::INFINITY, Axes::ALL)?.to_vec::<f32>()?, [4.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn norm_of_power(&self, power: f64, axes: impl Into<Axes>) -> Result<Tensor> {
        self.normed(axes.into(), false, power, Source::here())
    }

    fn normed(&self, axes: Axes, keep_dims: bool, power: f64, source: Source) -> Result<Tensor> {
        let op = &reduce::norm::NORM;
        let axes = self.axes(op, axes, source)?;
        let attrs = Attrs::Norm { axes, keep_dims, power: power.into() };
        apply1(op, smallvec![self.into()], attrs, source)
    }

    /// Where the largest along an axis stands, as i64; the first of several, and NaN if there is one.
    #[track_caller]
    pub fn argmax(&self, axis: i64) -> Result<Tensor> {
        self.along(&reduce::arg::ARGMAX, axis, Source::here(), Attrs::Axis)
    }

    /// Where the least along an axis stands, as i64; the first of several, and NaN if there is one.
    #[track_caller]
    pub fn argmin(&self, axis: i64) -> Result<Tensor> {
        self.along(&reduce::arg::ARGMIN, axis, Source::here(), Attrs::Axis)
    }

    /// Running sums along an axis.
    ///
    /// ```
    /// use tonnage::{Scan, tensor};
    /// let x = tensor([1, 2, 3])?;
    /// assert_eq!(x.cumsum(0)?.to_vec::<i32>()?, [1, 3, 6]);
    /// let back = Scan { exclusive: true, reverse: true };
    /// assert_eq!(x.cumsum_by(0, back)?.to_vec::<i32>()?, [5, 3, 0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn cumsum(&self, axis: i64) -> Result<Tensor> {
        self.scan(&reduce::cumsum::CUMSUM, axis, Scan::default(), Source::here())
    }

    /// Running sums along an axis, from either end, with or without the element itself.
    #[track_caller]
    pub fn cumsum_by(&self, axis: i64, how: Scan) -> Result<Tensor> {
        self.scan(&reduce::cumsum::CUMSUM, axis, how, Source::here())
    }

    /// Running products along an axis.
    #[track_caller]
    pub fn cumprod(&self, axis: i64) -> Result<Tensor> {
        self.scan(&reduce::cumprod::CUMPROD, axis, Scan::default(), Source::here())
    }

    /// Running products along an axis, from either end, with or without the element itself.
    #[track_caller]
    pub fn cumprod_by(&self, axis: i64, how: Scan) -> Result<Tensor> {
        self.scan(&reduce::cumprod::CUMPROD, axis, how, Source::here())
    }

    /// `y[i] = self[i] + factor[i] * y[i - 1]` along an axis.
    #[track_caller]
    pub fn linear_recurrence(&self, factor: &Tensor, axis: i64) -> Result<Tensor> {
        let (op, source) = (&reduce::linear_recurrence::LINEAR_RECURRENCE, Source::here());
        let axis = self.shape().axis(op.name, axis).map_err(|e| e.at(source))?;
        let attrs = Attrs::Scan { axis, exclusive: false, reverse: false };
        apply1(op, smallvec![factor.into(), self.into()], attrs, source)
    }

    fn scan(&self, op: &'static OpDef, axis: i64, how: Scan, source: Source) -> Result<Tensor> {
        let Scan { exclusive, reverse } = how;
        self.along(op, axis, source, |axis| Attrs::Scan { axis, exclusive, reverse })
    }

    fn along(
        &self,
        op: &'static OpDef,
        axis: i64,
        source: Source,
        attrs: impl FnOnce(usize) -> Attrs,
    ) -> Result<Tensor> {
        let axis = self.shape().axis(op.name, axis).map_err(|e| e.at(source))?;
        apply1(op, smallvec![self.into()], attrs(axis), source)
    }

    fn axes(&self, op: &'static OpDef, axes: Axes, source: Source) -> Result<Sizes> {
        match axes.0 {
            Some(axes) => self.shape().axes(op.name, &axes).map_err(|e| e.at(source)),
            None => Ok((0..self.rank()).collect()),
        }
    }

    fn reduce(
        &self,
        op: &'static OpDef,
        axes: Axes,
        keep_dims: bool,
        source: Source,
    ) -> Result<Tensor> {
        let axes = self.axes(op, axes, source)?;
        apply1(op, smallvec![self.into()], Attrs::Reduce { axes, keep_dims }, source)
    }
}

/// How a running sum or product goes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scan {
    /// Each result leaves its own element out.
    pub exclusive: bool,
    /// From the last element to the first.
    pub reverse: bool,
}
