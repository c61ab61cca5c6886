//! Parts that are chosen by index or by a mask.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Class, DType, OpDef, Result, Scalar, Shape, Source};
use tonnage_ops::index;

use super::Elementwise;
use crate::dispatch::{OpContext, apply, apply1};
use crate::make;
use crate::tensor::Tensor;

impl Tensor {
    /// Rows along the first axis, by index. An index out of range is an error; its gradient stays rows.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let table = tensor([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    /// let rows = table.gather(&tensor([2i64, 0])?, 0)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self, indices: &Tensor, axis: i64) -> Result<Tensor> {
        let source = Source::here();
        let axis = self.shape().axis("gather", axis).map_err(|e| e.at(source))?;
        let inputs = smallvec![self.into(), indices.into()];
        apply1(&index::gather::GATHER, inputs, Attrs::Axis(axis), source)
    }

    /// This table with rows added along the first axis; indices may repeat. Give the table up (`self` is
    /// moved in) and it is changed in place.
    #[track_caller]
    pub fn scatter_add(self, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), indices.into(), rows.into()];
        apply1(&index::scatter_add::SCATTER_ADD, inputs, Attrs::None, Source::here())
    }

    /// This table with rows replaced along the first axis; of rows with the same index the last stays.
    #[track_caller]
    pub fn scatter_update(self, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), indices.into(), rows.into()];
        apply1(&index::scatter_update::SCATTER_UPDATE, inputs, Attrs::None, Source::here())
    }

    /// The `k` largest along the last axis, largest first, and where they were.
    #[track_caller]
    pub fn top_k(&self, k: usize) -> Result<(Tensor, Tensor)> {
        let op = &index::top_k::TOP_K;
        let mut made =
            apply(op, smallvec![self.into()], Attrs::Count(k), OpContext::at(Source::here()))?;
        let indices = made.pop();
        match (made.pop(), indices) {
            (Some(values), Some(indices)) => Ok((values, indices)),
            _ => Err(bad_argument(op.name, "two results are missing", "report this")),
        }
    }

    /// The elements where a boolean mask over the leading axes is true, one after the other.
    #[track_caller]
    pub fn boolean_mask(&self, mask: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), mask.into()];
        apply1(&index::boolean_mask::BOOLEAN_MASK, inputs, Attrs::None, Source::here())
    }

    /// Rows along an axis by index, where the first `batch` axes of both are walked through together.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([[1, 2, 3], [4, 5, 6]])?;
    /// let picked = x.gather_batched(&tensor([[2i64], [0]])?, 1, 1)?;
    /// assert_eq!(picked.to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn gather_batched(&self, indices: &Tensor, axis: i64, batch: usize) -> Result<Tensor> {
        let source = Source::here();
        let axis = self.shape().axis("gather", axis).map_err(|e| e.at(source))?;
        if batch > axis {
            let what = format!("{batch} shared axes, and rows along axis {axis}");
            return Err(
                bad_argument("gather", what, "the axis comes behind the shared ones").at(source)
            );
        }
        // The axis next to the shared ones, and the axes between them back where they were: views.
        let between = axis - batch;
        let moved: Vec<i64> = (0..batch)
            .chain([axis])
            .chain(batch..axis)
            .chain(axis + 1..self.rank())
            .map(|a| a as i64)
            .collect();
        let each = indices.expand_dims(-1)?;
        let rows = self.transpose(&moved)?.gather_nd_batched(&each, batch)?;
        let inner = indices.rank() - batch;
        let back: Vec<i64> = (0..batch)
            .chain(batch + inner..batch + inner + between)
            .chain(batch..batch + inner)
            .chain(batch + inner + between..rows.rank())
            .map(|a| a as i64)
            .collect();
        rows.transpose(&back)
    }

    /// Rows by indices into several leading axes: the last axis of the indices is one index.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([[1, 2], [3, 4]])?;
    /// assert_eq!(x.gather_nd(&tensor([[1i64, 0], [0, 1]])?)?.to_vec::<i32>()?, [3, 2]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn gather_nd(&self, indices: &Tensor) -> Result<Tensor> {
        self.gather_nd_batched(indices, 0)
    }

    /// [`Tensor::gather_nd`] where the first `batch` axes of both are walked through together.
    #[track_caller]
    pub fn gather_nd_batched(&self, indices: &Tensor, batch: usize) -> Result<Tensor> {
        let inputs = smallvec![self.into(), indices.into()];
        apply1(&index::gather_nd::GATHER_ND, inputs, Attrs::Count(batch), Source::here())
    }

    /// Elements of each row along an axis, by indices of their own.
    #[track_caller]
    pub fn take_along_axis(&self, indices: &Tensor, axis: i64) -> Result<Tensor> {
        let source = Source::here();
        let op = &index::take_along_axis::TAKE_ALONG_AXIS;
        self.with_last(op.name, axis, source, |x, order| {
            let indices = indices.transpose(order)?;
            apply1(op, smallvec![x.into(), (&indices).into()], Attrs::None, source)
        })
    }

    /// Runs an op along an axis as if it were the last one: both are looked at in another order of axes.
    fn with_last(
        &self,
        op: &'static str,
        axis: i64,
        source: Source,
        run: impl FnOnce(&Tensor, &[i64]) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let axis = self.shape().axis(op, axis).map_err(|e| e.at(source))?;
        let mut order: Vec<i64> = (0..self.rank() as i64).collect();
        let last = order.len() - 1;
        order.swap(axis, last);
        match axis == last {
            true => run(self, &order),
            false => run(&self.transpose(&order)?, &order)?.transpose(&order),
        }
    }

    /// Each row along an axis in order, the least first, or the largest where `descending`. NaN counts as larger
    /// than everything.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([3.0f32, 1.0, 2.0])?;
    /// assert_eq!(x.sort(0, true)?.to_vec::<f32>()?, [3.0, 2.0, 1.0]);
    /// assert_eq!(x.argsort(0, false)?.to_vec::<i32>()?, [1, 2, 0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn sort(&self, axis: i64, descending: bool) -> Result<Tensor> {
        self.ordered(&index::sort::SORT, axis, descending, Source::here())
    }

    /// Where the elements of each row along an axis stand once they are in order, as i32; of equal ones the first
    /// comes first.
    #[track_caller]
    pub fn argsort(&self, axis: i64, descending: bool) -> Result<Tensor> {
        self.ordered(&index::argsort::ARGSORT, axis, descending, Source::here())
    }

    fn ordered(
        &self,
        op: &'static OpDef,
        axis: i64,
        descending: bool,
        source: Source,
    ) -> Result<Tensor> {
        self.with_last(op.name, axis, source, |x, _| {
            apply1(op, smallvec![x.into()], Attrs::Descending(descending), source)
        })
    }

    /// Where values would be put into rows that are sorted along the last axis, as i32: before elements that are
    /// equal, or behind them where `right`.
    #[track_caller]
    pub fn searchsorted(&self, values: &Tensor, right: bool) -> Result<Tensor> {
        let inputs = smallvec![self.into(), values.into()];
        apply1(&index::searchsorted::SEARCHSORTED, inputs, Attrs::Right(right), Source::here())
    }

    /// The different elements of a vector in the order in which they first appear, and where each element is
    /// among them (i32).
    ///
    /// ```
    /// use tonnage::tensor;
    /// let (values, indices) = tensor([7, 5, 7])?.unique()?;
    /// assert_eq!((values.to_vec::<i32>()?, indices.to_vec::<i32>()?), (vec![7, 5], vec![0, 1, 0]));
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn unique(&self) -> Result<(Tensor, Tensor)> {
        self.unique_with_counts().map(|(values, indices, _)| (values, indices))
    }

    /// [`Tensor::unique`], and how often each appears (i64).
    #[track_caller]
    pub fn unique_with_counts(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let op = &index::unique::UNIQUE;
        let made = apply(op, smallvec![self.into()], Attrs::None, OpContext::at(Source::here()))?;
        match <[Tensor; 3]>::try_from(made.into_vec()) {
            Ok([values, indices, counts]) => Ok((values, indices, counts)),
            Err(_) => Err(bad_argument(op.name, "three results are missing", "report this")),
        }
    }

    /// The indices of all elements that are not 0 (or true), in order, as rows of i64.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        let (op, source) = (&index::nonzero::NONZERO, Source::here());
        match self.dtype() {
            DType::Bool => apply1(op, smallvec![self.into()], Attrs::None, source),
            _ => {
                let mask = self.not_equal(0)?;
                apply1(op, smallvec![mask.into()], Attrs::None, source)
            }
        }
    }

    /// A part of that shape that starts where an integer tensor says, one number an axis. Leaving the tensor is an
    /// error.
    #[track_caller]
    pub fn dynamic_slice(&self, start: &Tensor, shape: impl Into<Shape>) -> Result<Tensor> {
        let inputs = smallvec![self.into(), start.into()];
        let op = &index::dynamic_slice::DYNAMIC_SLICE;
        apply1(op, inputs, Attrs::Shape(shape.into()), Source::here())
    }

    /// With a part replaced, from where an integer tensor says. Give the tensor up (`self` is moved in) and it is
    /// changed in place.
    #[track_caller]
    pub fn dynamic_update(self, part: &Tensor, start: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), part.into(), start.into()];
        apply1(&index::dynamic_update::DYNAMIC_UPDATE, inputs, Attrs::None, Source::here())
    }

    /// How often each whole number from 0 to below `bins` appears, as i64. Another number is an error.
    #[track_caller]
    pub fn bincount(&self, bins: usize) -> Result<Tensor> {
        let op = &index::bincount::BINCOUNT;
        apply1(op, smallvec![self.into()], Attrs::Count(bins), Source::here())
    }

    /// How many elements lie in each of `bins` even parts of a range, as i64; those beyond an end count in the part
    /// at that end.
    #[track_caller]
    pub fn histogram(&self, low: f64, high: f64, bins: usize) -> Result<Tensor> {
        let (low, high) = (low.into(), high.into());
        let attrs = Attrs::Histogram { low, high, bins };
        apply1(&index::histogram::HISTOGRAM, smallvec![self.into()], attrs, Source::here())
    }
}

macro_rules! scatters {
    ($($(#[$doc:meta])* $name:ident => $op:path;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
            let inputs = smallvec![self.into(), indices.into(), rows.into()];
            apply1(&$op, inputs, Attrs::Count(0), Source::here())
        }
    )*};
}

/// Rows put in at indices into several leading axes: the last axis of the indices is one index. Give the tensor up
/// (`self` is moved in) and it is changed in place.
impl Tensor {
    scatters! {
        /// With rows added; indices may repeat.
        scatter_nd_add => index::scatter_nd_add::SCATTER_ND_ADD;
        /// With rows replaced; of rows with the same index the last stays.
        scatter_nd_update => index::scatter_nd_update::SCATTER_ND_UPDATE;
        /// With the larger of each element and the rows that name it.
        scatter_nd_max => index::scatter_nd_max::SCATTER_ND_MAX;
        /// With the smaller of each element and the rows that name it.
        scatter_nd_min => index::scatter_nd_min::SCATTER_ND_MIN;
    }

    /// This table with the larger of each row along the first axis and the rows that name it.
    #[track_caller]
    pub fn scatter_max(self, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
        self.scatter_nd_max(&indices.expand_dims(-1)?, rows)
    }

    /// This table with the smaller of each row along the first axis and the rows that name it.
    #[track_caller]
    pub fn scatter_min(self, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
        self.scatter_nd_min(&indices.expand_dims(-1)?, rows)
    }

    /// Rows of the first axis added up by the segment that each belongs to: `count` of them, in any order. A
    /// segment without rows is 0.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([1.0f32, 2.0, 4.0])?;
    /// let sums = x.segment_sum(&tensor([1, 0, 1])?, 3)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [2.0, 5.0, 0.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn segment_sum(&self, segments: &Tensor, count: usize) -> Result<Tensor> {
        let (rows, segments) = self.by_segments(segments)?;
        rows.segmented(&segments, count, 0.into())?.scatter_add(&segments, &rows)
    }

    /// The mean of the rows of each segment; that of a segment without rows is 0.
    #[track_caller]
    pub fn segment_mean(&self, segments: &Tensor, count: usize) -> Result<Tensor> {
        let sums = self.segment_sum(segments, count)?;
        let counts = segments.bincount(count)?.cast(sums.dtype())?.maximum(1)?;
        let mut shape = vec![count as i64];
        shape.resize(sums.rank().max(1), 1);
        sums.div(&counts.reshape(&shape)?)
    }

    /// The largest of the rows of each segment; that of a segment without rows is the least value of the dtype.
    #[track_caller]
    pub fn segment_max(&self, segments: &Tensor, count: usize) -> Result<Tensor> {
        let least = extremes(self.dtype())[0];
        let (rows, segments) = self.by_segments(segments)?;
        rows.segmented(&segments, count, least)?.scatter_max(&segments, &rows)
    }

    /// The least of the rows of each segment; that of a segment without rows is the largest value of the dtype.
    #[track_caller]
    pub fn segment_min(&self, segments: &Tensor, count: usize) -> Result<Tensor> {
        let most = extremes(self.dtype())[1];
        let (rows, segments) = self.by_segments(segments)?;
        rows.segmented(&segments, count, most)?.scatter_min(&segments, &rows)
    }

    /// Rows and their segments. Where the data decide how many there are, the two numbers are compared as they run.
    #[track_caller]
    fn by_segments(&self, segments: &Tensor) -> Result<(Tensor, Tensor)> {
        let (mut rows, mut by) = (self.shape(), segments.shape());
        for (row, segment) in rows.iter_mut().zip(by.iter_mut()) {
            match (row.depends_on_data(), segment.depends_on_data()) {
                (true, _) => *row = segment.clone(),
                (false, true) => *segment = row.clone(),
                _ => {}
            }
        }
        let sized = |tensor: &Tensor, shape: Shape| match tensor.shape() == shape {
            true => Ok(tensor.clone()),
            false => tensor.reshape(shape),
        };
        Ok((sized(self, rows)?, sized(segments, by)?))
    }

    /// A value for every segment.
    #[track_caller]
    fn segmented(&self, segments: &Tensor, count: usize, value: Scalar) -> Result<Tensor> {
        let source = Source::here();
        let (shape, by) = (self.shape(), segments.shape());
        if by.rank() == 0 || by.rank() > shape.rank() || shape[..by.rank()] != by[..] {
            let what = format!("segments of shape {by} for rows of shape {shape}");
            let help = "each row along the leading axes belongs to one segment";
            return Err(bad_argument("segment_sum", what, help).at(source));
        }
        let rows = shape[by.rank()..].iter().cloned();
        let shape = std::iter::once(count.into()).chain(rows).collect();
        make::fill(value, self.dtype(), shape, source)
    }
}

/// The least and the largest value of a dtype.
fn extremes(dtype: DType) -> [Scalar; 2] {
    let bits = 8 * dtype.size() as u32;
    match dtype.class() {
        Class::Float => [f64::NEG_INFINITY.into(), f64::INFINITY.into()],
        Class::Signed => [Scalar::Int(-(1 << (bits - 1))), Scalar::Int((1 << (bits - 1)) - 1)],
        Class::Unsigned => [Scalar::Int(0), Scalar::Int((1i128 << bits) - 1)],
        Class::Bool => [false.into(), true.into()],
    }
}
