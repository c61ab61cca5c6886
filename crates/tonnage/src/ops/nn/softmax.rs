//! Powers of e that add up to 1, and their logarithms.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{OpDef, Result, Sizes, Source};
use tonnage_ops::{nn, shape};

use crate::dispatch::{TensorArg, apply1};
use crate::tensor::Tensor;

impl Tensor {
    /// Positive numbers that add up to 1 along an axis.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([[0.0f32, 0.0], [1000.0, 0.0]])?;
    /// assert_eq!(x.softmax(-1)?.to_vec::<f32>()?, [0.5, 0.5, 1.0, 0.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, axis: i64) -> Result<Tensor> {
        self.along_axis(&nn::softmax::plain::SOFTMAX, axis, Source::here())
    }

    /// The logarithm of softmax along an axis, exact also where softmax itself is too small to be a number.
    #[track_caller]
    pub fn log_softmax(&self, axis: i64) -> Result<Tensor> {
        self.along_axis(&nn::softmax::log::LOG_SOFTMAX, axis, Source::here())
    }

    /// An op along the last axis, along another one: read transposed, without a copy.
    fn along_axis(&self, op: &'static OpDef, axis: i64, source: Source) -> Result<Tensor> {
        let axis = self.shape().axis(op.name, axis).map_err(|e| e.at(source))?;
        let mut order: Sizes = (0..self.rank()).collect();
        if axis + 1 == order.len() {
            return apply1(op, smallvec![self.into()], Attrs::None, source);
        }
        let last = order.len() - 1;
        order.swap(axis, last);
        let transpose = |x: TensorArg| {
            let attrs = Attrs::Order(order.clone());
            apply1(&shape::transpose::TRANSPOSE, smallvec![x], attrs, source)
        };
        let made = apply1(op, smallvec![transpose(self.into())?.into()], Attrs::None, source)?;
        transpose(made.into())
    }
}
