//! Products of matrices and factorizations.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{OpDef, Result, Shape, Source};
use tonnage_ops::linalg;

use crate::dispatch::{OpContext, apply, apply1};
use crate::make;
use crate::tensor::Tensor;

impl Tensor {
    /// The product of matrices, batched over leading axes. A transposed operand (`x.t()?`) is read as it
    /// lies: no copy is made.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        apply1(&linalg::matmul::MATMUL, smallvec![self.into(), other.into()], attrs, Source::here())
    }

    /// The product of matrices of 8-bit integers, of either sign each, with sums of 32 bits; batched as [`Tensor::matmul`].
    ///
    /// ```
    /// use tonnage::tensor;
    /// let a = tensor([[255u8, 1]])?;
    /// let b = tensor([[127i8, -128], [1, 1]])?;
    /// assert_eq!(a.matmul_integer(&b)?.to_vec::<i32>()?, [255 * 127 + 1, -255 * 128 + 1]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul_integer(&self, other: &Tensor) -> Result<Tensor> {
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        let op = &linalg::matmul_integer::MATMUL_INTEGER;
        apply1(op, smallvec![self.into(), other.into()], attrs, Source::here())
    }

    /// The lower triangle L with L * L^T = this, of symmetric positive definite matrices.
    #[track_caller]
    pub fn cholesky(&self) -> Result<Tensor> {
        self.factored(&linalg::cholesky::CHOLESKY, Source::here())
    }

    /// X with this * X = `right`, of lower triangular matrices; an upper one is the transpose of a lower one.
    #[track_caller]
    pub fn triangular_solve(&self, right: &Tensor, transposed: bool) -> Result<Tensor> {
        let attrs = Attrs::Matmul { transpose_a: transposed, transpose_b: false };
        let inputs = smallvec![self.into(), right.into()];
        apply1(&linalg::triangular_solve::TRIANGULAR_SOLVE, inputs, attrs, Source::here())
    }

    /// X with this * X = `right`, of square matrices. One without an inverse is an error.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let (a, b) = (tensor([[2.0f64, 1.0], [1.0, 3.0]])?, tensor([[3.0f64], [4.0]])?);
    /// assert_eq!(a.solve(&b)?.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn solve(&self, right: &Tensor) -> Result<Tensor> {
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        apply1(&linalg::solve::SOLVE, smallvec![self.into(), right.into()], attrs, Source::here())
    }

    /// The inverse of square matrices. One without an inverse is an error; to multiply by the inverse,
    /// [`Tensor::solve`] is quicker and more accurate.
    #[track_caller]
    pub fn inv(&self) -> Result<Tensor> {
        self.factored(&linalg::inv::INV, Source::here())
    }

    /// The determinant of square matrices.
    #[track_caller]
    pub fn det(&self) -> Result<Tensor> {
        self.factored(&linalg::det::DET, Source::here())
    }

    /// The sign of the determinant of square matrices, and the logarithm of its size.
    #[track_caller]
    pub fn slogdet(&self) -> Result<(Tensor, Tensor)> {
        let op = &linalg::slogdet::SLOGDET;
        let made = apply(op, smallvec![self.into()], Attrs::None, OpContext::at(Source::here()))?;
        match <[Tensor; 2]>::try_from(made.into_vec()) {
            Ok([sign, log]) => Ok((sign, log)),
            Err(_) => Err(bad_argument(op.name, "two results are missing", "report this")),
        }
    }

    /// The logarithm of the determinant of square matrices; NaN where it is negative.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let matrices = tensor([[[2.0f64, 0.0], [0.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]]])?;
    /// let logs = matrices.logdet()?.to_vec::<f64>()?;
    /// assert!((logs[0] - 6.0f64.ln()).abs() < 1e-15 && logs[1].is_nan());
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn logdet(&self) -> Result<Tensor> {
        let source = Source::here();
        let (sign, log) = self.slogdet()?;
        let none = make::fill(f64::NAN.into(), log.dtype(), Shape::scalar(), source)?;
        sign.less(0)?.where_(&none, &log)
    }

    fn factored(&self, op: &'static OpDef, source: Source) -> Result<Tensor> {
        apply1(op, smallvec![self.into()], Attrs::None, source)
    }

    /// The product of square matrices with themselves, `power` times; a negative power is one of the inverse.
    #[track_caller]
    pub fn matrix_power(&self, power: i32) -> Result<Tensor> {
        let source = Source::here();
        let shape = self.shape();
        let [.., rows, columns] = &shape[..] else {
            let what = format!("{shape} has no two axes");
            return Err(bad_argument("matrix_power", what, "a matrix is the last two").at(source));
        };
        if rows != columns {
            let what = format!("the matrices of {shape} are not square");
            let help = "the last two axes must have the same length";
            return Err(bad_argument("matrix_power", what, help).at(source));
        }
        let (rows, columns) = (rows.clone(), columns.clone());
        if power == 0 {
            let attrs = Attrs::Eye { rows, columns, diagonal: 0, dtype: self.dtype() };
            let op = &tonnage_ops::shape::eye::EYE;
            return apply1(op, smallvec![], attrs, source)?.broadcast_to(&shape);
        }
        let mut square = if power < 0 { self.inv()? } else { self.clone() };
        let mut made: Option<Tensor> = None;
        let mut left = power.unsigned_abs();
        // Each bit of the power stands for a square that is multiplied in, or not.
        loop {
            if left & 1 == 1 {
                made = Some(match made {
                    Some(made) => made.matmul(&square)?,
                    None => square.clone(),
                });
            }
            left >>= 1;
            match (left, made) {
                (0, Some(made)) => return Ok(made),
                (_, held) => made = held,
            }
            square = square.matmul(&square)?;
        }
    }

    /// The sum of a diagonal of matrices: 0 is the main one.
    #[track_caller]
    pub fn trace(&self, diagonal: i64) -> Result<Tensor> {
        self.diag_part(diagonal)?.sum(-1)
    }

    /// Every element of one vector times every element of another.
    #[track_caller]
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        let source = Source::here();
        for vector in [self, other] {
            if vector.rank() != 1 {
                let what = format!("the shapes {} and {}", self.shape(), other.shape());
                let help = "use vectors; `tensordot` multiplies tensors of any rank";
                return Err(bad_argument("outer", what, help).at(source));
            }
        }
        self.expand_dims(1)?.mul(&other.expand_dims(0)?)
    }

    /// The cross product of vectors of 3 elements along the last axis.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let (x, y) = (tensor([1.0f32, 0.0, 0.0])?, tensor([0.0f32, 1.0, 0.0])?);
    /// assert_eq!(x.cross(&y)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn cross(&self, other: &Tensor) -> Result<Tensor> {
        let source = Source::here();
        let three = |x: &Tensor| x.shape().last().is_some_and(|d| d.is(3));
        if !three(self) || !three(other) {
            let what = format!("the shapes {} and {}", self.shape(), other.shape());
            let help = "the last axis of both must have 3 elements";
            return Err(bad_argument("cross", what, help).at(source));
        }
        let left = self.roll(-1, -1)?.mul(&other.roll(-2, -1)?)?;
        let right = self.roll(-2, -1)?.mul(&other.roll(-1, -1)?)?;
        left.sub(&right)
    }

    /// The sum of products along the last axis of this and the first of the other: the product of numbers and of
    /// matrices, for tensors of any rank.
    #[track_caller]
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        match self.rank() == 0 || other.rank() == 0 {
            true => self.mul(other),
            false => self.tensordot(other, &[-1], &[0]),
        }
    }

    /// The sum of products along pairs of axes, one of this and one of the other; the axes that are left follow one
    /// another.
    ///
    /// ```
    /// use tonnage::ones;
    /// let (a, b) = (ones([2, 3, 4])?, ones([4, 5, 3])?);
    /// let c = a.tensordot(&b, &[1, 2], &[2, 0])?;
    /// assert_eq!(c.shape().to_string(), "[2, 5]");
    /// assert_eq!(c.max_all()?.to_vec::<f32>()?, [12.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn tensordot(&self, other: &Tensor, axes: &[i64], other_axes: &[i64]) -> Result<Tensor> {
        let source = Source::here();
        let resolve = |x: &Tensor, axes: &[i64]| -> Result<Vec<usize>> {
            axes.iter().map(|a| x.shape().axis("tensordot", *a)).collect()
        };
        let (mine, theirs) = (
            resolve(self, axes).map_err(|e| e.at(source))?,
            resolve(other, other_axes).map_err(|e| e.at(source))?,
        );
        let twice = |axes: &[usize]| axes.iter().enumerate().any(|(i, a)| axes[..i].contains(a));
        if mine.len() != theirs.len() || twice(&mine) || twice(&theirs) {
            let what = format!("the axes {axes:?} and {other_axes:?}");
            return Err(bad_argument("tensordot", what, "name pairs, each axis once").at(source));
        }
        // Letters: those that are summed are the same on both sides.
        let mut left: Vec<usize> = (0..self.rank()).collect();
        let mut right: Vec<usize> = (0..other.rank()).map(|a| self.rank() + a).collect();
        for (i, (a, b)) in mine.iter().zip(&theirs).enumerate() {
            left[*a] = self.rank() + other.rank() + i;
            right[*b] = self.rank() + other.rank() + i;
        }
        let kept = |labels: &[usize]| {
            let all = self.rank() + other.rank();
            labels.iter().copied().filter(|l| *l < all).collect::<Vec<_>>()
        };
        let out = [kept(&left), kept(&right)].concat();
        super::einsum::contract(self, &left, other, &right, &out, "tensordot", source)
    }
}
