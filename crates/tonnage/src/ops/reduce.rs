//! Reductions over any axes.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{OpDef, Result, Source};
use tonnage_ops::{math, reduce};

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
        let count = self.shape().elements().most().unwrap_or(1);
        binary_op(&math::div::DIV, Input::Owned(sum), count as f64, source)
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
