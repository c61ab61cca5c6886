//! Factorizations of matrices, and what is solved by them. A matrix is the last two axes.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{DType, OpDef, Result, Source};
use tonnage_ops::linalg;

use super::Operand;
use crate::dispatch::{OpContext, apply};
use crate::make;
use crate::tensor::Tensor;

impl Tensor {
    /// Q and R with Q R = this: Q has orthonormal columns, R is upper triangular with no element below 0 on its diagonal. As many
    /// columns, and rows, as this has rows or columns, whichever are fewer.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let a = tensor([[3.0f64, 1.0], [4.0, 2.0]])?;
    /// let (q, r) = a.qr()?;
    /// assert!((q.matmul(&r)?.to_vec::<f64>()?[3] - 2.0).abs() < 1e-14);
    /// assert!((r.to_vec::<f64>()?[0] - 5.0).abs() < 1e-14);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn qr(&self) -> Result<(Tensor, Tensor)> {
        let [q, r] = self.several(&linalg::qr::QR, Source::here())?;
        Ok((q, r))
    }

    /// The eigenvalues of symmetric matrices, the least first, and their eigenvectors as columns. A matrix stands for its
    /// symmetric part.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let (values, vectors) = tensor([[2.0f64, 1.0], [1.0, 2.0]])?.eigh()?;
    /// let values = values.to_vec::<f64>()?;
    /// assert!((values[0] - 1.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
    /// assert_eq!(vectors.shape().to_string(), "[2, 2]");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn eigh(&self) -> Result<(Tensor, Tensor)> {
        let [values, vectors] = self.several(&linalg::eigh::EIGH, Source::here())?;
        Ok((values, vectors))
    }

    /// U, s and V with U diag(s) Vᵀ = this: U and V have orthonormal columns, and s are the singular values, the largest first. As
    /// many as this has rows or columns, whichever are fewer.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let (u, s, v) = tensor([[3.0f64, 0.0], [0.0, 4.0], [0.0, 0.0]])?.svd()?;
    /// assert_eq!(s.to_vec::<f64>()?, [4.0, 3.0]);
    /// assert_eq!((u.shape().to_string(), v.shape().to_string()), ("[3, 2]".into(), "[2, 2]".into()));
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let [u, s, v] = self.several(&linalg::svd::SVD, Source::here())?;
        Ok((u, s, v))
    }

    fn several<const N: usize>(&self, op: &'static OpDef, source: Source) -> Result<[Tensor; N]> {
        let made = apply(op, smallvec![self.into()], Attrs::None, OpContext::at(source))?;
        <[Tensor; N]>::try_from(made.into_vec())
            .map_err(|_| bad_argument(op.name, "results are missing", "report this").at(source))
    }

    /// X for which this times X comes closest to `right`, by the sum of squares; of a matrix with fewer rows than columns, which
    /// many X solve, the one with the least sum of squares. By a QR factorization; a matrix whose columns (or rows, if those are fewer) depend on
    /// one another is an error.
    ///
    /// ```
    /// use tonnage::tensor;
    /// // A line through three points.
    /// let a = tensor([[1.0f64, 0.0], [1.0, 1.0], [1.0, 2.0]])?;
    /// let x = a.lstsq(&tensor([[1.0f64], [3.0], [5.0]])?)?.to_vec::<f64>()?;
    /// assert!((x[0] - 1.0).abs() < 1e-14 && (x[1] - 2.0).abs() < 1e-14);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn lstsq(&self, right: &Tensor) -> Result<Tensor> {
        let (op, source, shape) = ("lstsq", Source::here(), self.shape());
        let [.., rows, columns] = &shape[..] else {
            let what = format!("{shape} has no two axes");
            return Err(bad_argument(op, what, "a matrix is the last two").at(source));
        };
        let (Some(m), Some(n)) = (rows.known(), columns.known()) else {
            let what = format!("the rows or columns of {shape} are open");
            return Err(bad_argument(op, what, "fix both in the signature").at(source));
        };
        let fits = right.rank() == shape.rank()
            && right.shape()[..shape.rank() - 1] == shape[..shape.rank() - 1];
        if !fits {
            let what = format!("the shapes {shape} and {}", right.shape());
            let help = "the right side must have the left side's batch and rows";
            return Err(bad_argument(op, what, help).at(source));
        }
        if m >= n {
            // R X = Qᵀ B, with R as the transpose of a lower triangle.
            let (q, r) = self.qr()?;
            return r.t()?.triangular_solve(&q.t()?.matmul(right)?, true);
        }
        // Aᵀ = Q R, so that Rᵀ Y = B and X = Q Y.
        let (q, r) = self.t()?.qr()?;
        q.matmul(&r.t()?.triangular_solve(right, false)?)
    }

    /// [`Tensor::lstsq`] with `weight` times the sum of squares of X added to what is made small, by the normal equations. Any
    /// matrix has a solution then.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let a = tensor([[1.0f64, 1.0], [1.0, 1.0]])?;
    /// let x = a.lstsq_regularized(&tensor([[2.0f64], [2.0]])?, 1e-3)?.to_vec::<f64>()?;
    /// assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-3));
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn lstsq_regularized(&self, right: &Tensor, weight: f64) -> Result<Tensor> {
        let source = Source::here();
        let transposed = self.t()?;
        let square = transposed.matmul(self)?;
        let shape = square.shape();
        let [.., rows, columns] = &shape[..] else {
            let what = format!("{shape} has no two axes");
            return Err(bad_argument("lstsq", what, "a matrix is the last two").at(source));
        };
        let ridge = make::eye_of(rows.clone(), columns.clone(), 0, square.dtype())?;
        (square + (ridge * weight)?)?.solve(&transposed.matmul(right)?)
    }

    /// X with this * thisᵀ * X = `right`: this is a factor as [`Tensor::cholesky`] gives it.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let a = tensor([[4.0f64, 2.0], [2.0, 5.0]])?;
    /// let x = a.cholesky()?.cholesky_solve(&tensor([[6.0f64], [7.0]])?)?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn cholesky_solve(&self, right: &Tensor) -> Result<Tensor> {
        self.triangular_solve(&self.triangular_solve(right, false)?, true)
    }

    /// The pseudo-inverse of matrices. Singular values count as 0 up to the largest times ten times the longer side times
    /// the dtype's precision.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let a = tensor([[2.0f64, 0.0], [0.0, 0.0]])?;
    /// assert_eq!(a.pinv()?.to_vec2::<f64>()?, [[0.5, 0.0], [0.0, 0.0]]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where a side of the matrices is open: use [`Tensor::pinv_by`].
    #[track_caller]
    pub fn pinv(&self) -> Result<Tensor> {
        let (source, shape) = (Source::here(), self.shape());
        let sides = match &shape[..] {
            [.., rows, columns] => rows.known().zip(columns.known()),
            _ => {
                let what = format!("{shape} has no two axes");
                return Err(bad_argument("pinv", what, "a matrix is the last two").at(source));
            }
        };
        let Some((rows, columns)) = sides else {
            let what = format!("the rows or columns of {shape} are open");
            return Err(bad_argument("pinv", what, "say what counts as 0").at(source));
        };
        let precision = if self.dtype() == DType::F64 { 2.220446e-16 } else { 1.1920929e-7 };
        self.pinv_by(10.0 * rows.max(columns) as f64 * precision)
    }

    /// The pseudo-inverse of matrices: singular values up to `rcond` times the largest count as 0.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let a = tensor([[2.0f64, 0.0], [0.0, 0.1]])?;
    /// assert_eq!(a.pinv_by(0.1)?.to_vec2::<f64>()?, [[0.5, 0.0], [0.0, 0.0]]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn pinv_by(&self, rcond: impl Operand) -> Result<Tensor> {
        let (u, s, v) = self.svd()?;
        let large = s.greater(&s.max_keep(-1)?.mul(rcond)?)?;
        let inverse = (1.0 / large.where_(&s, &s.ones_like()?)?)?;
        let inverse = large.where_(&inverse, &s.zeros_like()?)?;
        (v * inverse.expand_dims(-2)?)?.matmul(&u.t()?)
    }
}
