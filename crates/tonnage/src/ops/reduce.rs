//! Reductions over any axes.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{OpDef, Result, Source};
use tonnage_ops::{math, reduce, shape};

use super::binary_op;
use crate::dispatch::{Input, apply1};
use crate::part::Axes;
use crate::tensor::Tensor;

impl Tensor {
    /// Added up over axes.
    #[track_caller]
    pub fn sum(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.reduce(&reduce::sum::SUM, axes.into(), false, Source::here())
    }

    /// Added up over all axes.
    #[track_caller]
    pub fn sum_all(&self) -> Result<Tensor> {
        self.reduce(&reduce::sum::SUM, Axes::ALL, false, Source::here())
    }

    /// Added up over axes, which stay as lengths of 1.
    #[track_caller]
    pub fn sum_keep(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.reduce(&reduce::sum::SUM, axes.into(), true, Source::here())
    }

    /// The largest over axes.
    #[track_caller]
    pub fn max(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.reduce(&reduce::max::MAX, axes.into(), false, Source::here())
    }

    /// The largest over axes, which stay as lengths of 1.
    #[track_caller]
    pub fn max_keep(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.reduce(&reduce::max::MAX, axes.into(), true, Source::here())
    }

    /// The mean over all axes of a float tensor.
    #[track_caller]
    pub fn mean_all(&self) -> Result<Tensor> {
        let source = Source::here();
        let sum = self.reduce(&reduce::sum::SUM, Axes::ALL, false, source)?;
        match self.shape().count() {
            Some(count) => binary_op(&math::div::DIV, Input::Owned(sum), count as f64, source),
            None => binary_op(&math::div::DIV, Input::Owned(sum), self.count(source)?, source),
        }
    }

    /// How many elements there are, in its own dtype, where that is known as it runs alone.
    fn count(&self, source: Source) -> Result<Tensor> {
        let size = self.shape().elements();
        let mut by_data = false;
        size.symbols(&mut |symbol| by_data |= symbol.bound().is_some());
        if !by_data {
            let attrs = Attrs::Size { size, dtype: self.dtype() };
            return apply1(&shape::size::SIZE, smallvec![], attrs, source);
        }
        // Only the data know: ones are added up.
        let none = binary_op(&math::less::LESS, self.into(), self, source)?;
        let to = Attrs::DType(self.dtype());
        let zeros = apply1(&math::cast::CAST, smallvec![none.into()], to, source)?;
        let ones = binary_op(&math::add::ADD, Input::Owned(zeros), 1, source)?;
        ones.reduce(&reduce::sum::SUM, Axes::ALL, false, source)
    }

    fn reduce(
        &self,
        op: &'static OpDef,
        axes: Axes,
        keep_dims: bool,
        source: Source,
    ) -> Result<Tensor> {
        let axes = match axes.0 {
            Some(axes) => self.shape().axes(op.name, &axes).map_err(|e| e.at(source))?,
            None => (0..self.rank()).collect(),
        };
        apply1(op, smallvec![self.into()], Attrs::Reduce { axes, keep_dims }, source)
    }
}
