//! Products of matrices and factorizations.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Result, Source};
use tonnage_ops::linalg;

use crate::dispatch::apply1;
use crate::tensor::Tensor;

impl Tensor {
    /// The product of matrices, batched over leading axes. A transposed operand (`x.t()?`) is read as it
    /// lies: no copy is made.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        apply1(&linalg::matmul::MATMUL, smallvec![self.into(), other.into()], attrs, Source::here())
    }

    /// The lower triangle L with L * L^T = this, of symmetric positive definite matrices.
    #[track_caller]
    pub fn cholesky(&self) -> Result<Tensor> {
        let op = &linalg::cholesky::CHOLESKY;
        apply1(op, smallvec![self.into()], Attrs::None, Source::here())
    }
}
