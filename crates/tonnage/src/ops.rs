//! The ops as methods of the tensor. Each is its row's name; `self` is borrowed unless the name of the
//! operator says otherwise (see `operators`).

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Dim, OpDef, Result, Scalar, Shape, Source};
use tonnage_ops::{index, linalg, math, nn, reduce, shape};

use crate::dispatch::{Input, Inputs, apply, apply1};
use crate::make;
use crate::part::{Axes, Part};
use crate::tensor::Tensor;

macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident $(($arg:ident: $T:ty))? => $op:path, $attrs:expr;)*) => {
        /// Ops that can work in place, on a tensor or on a reference to one. A tensor that is moved in
        /// (`x.exp()`) and that nobody else holds lends its bytes to the result; one that is borrowed
        /// (`(&x).exp()`) is left as it is.
        ///
        /// ```
        /// use tonnage::{Elementwise, memory, tensor};
        /// let x = tensor([1.0f32, 2.0])?;
        /// let kept = (&x).square()?; // allocates
        /// let scope = memory::scope();
        /// let moved = x.square()?; // works in place
        /// assert_eq!(scope.report().count(memory::Action::Allocated), 0);
        /// assert_eq!(moved.to_vec::<f32>()?, kept.to_vec::<f32>()?);
        /// # Ok::<(), tonnage::Error>(())
        /// ```
        pub trait Elementwise: Sized {
            $($(#[$doc])*
            #[track_caller]
            fn $name(self $(, $arg: $T)?) -> Result<Tensor>;)*
        }

        impl Elementwise for Tensor {
            $(#[track_caller]
            fn $name(self $(, $arg: $T)?) -> Result<Tensor> {
                apply1(&$op, smallvec![self.into()], $attrs, Source::here())
            })*
        }

        impl Elementwise for &Tensor {
            $(#[track_caller]
            fn $name(self $(, $arg: $T)?) -> Result<Tensor> {
                apply1(&$op, smallvec![self.into()], $attrs, Source::here())
            })*
        }
    };
}

elementwise! {
    /// Every element times itself.
    square => math::square::SQUARE, Attrs::None;
    /// e to the power of every element.
    exp => math::exp::EXP, Attrs::None;
    /// The natural logarithm of every element.
    log => math::log::LOG, Attrs::None;
    /// The hyperbolic tangent of every element.
    tanh => math::tanh::TANH, Attrs::None;
    /// Every element, or 0 where it is negative.
    relu => math::relu::RELU, Attrs::None;
    /// Every element in another dtype.
    cast(dtype: DType) => math::cast::CAST, Attrs::DType(dtype);
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:path;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, other: impl Operand) -> Result<Tensor> {
            binary_op(&$op, self.into(), other, Source::here())
        }
    )*};
}

impl Tensor {
    binary! {
        /// The sum, broadcast.
        add => math::add::ADD;
        /// The difference, broadcast.
        sub => math::sub::SUB;
        /// The product element by element, broadcast.
        mul => math::mul::MUL;
        /// The quotient, broadcast.
        div => math::div::DIV;
        /// The larger one, broadcast.
        maximum => math::maximum::MAXIMUM;
        /// Where it is less, broadcast.
        less => math::less::LESS;
        /// Where it is equal, broadcast.
        equal => math::equal::EQUAL;
    }

    /// The same values, without a copy; no gradient goes through.
    #[track_caller]
    pub fn stop_gradient(&self) -> Result<Tensor> {
        let op = &math::stop_gradient::STOP_GRADIENT;
        apply1(op, smallvec![self.into()], Attrs::None, Source::here())
    }

    /// The same values in bytes of their own.
    #[track_caller]
    pub fn identity(&self) -> Result<Tensor> {
        apply1(&math::identity::IDENTITY, smallvec![self.into()], Attrs::None, Source::here())
    }

    /// `yes` where this is true, `no` elsewhere; all broadcast.
    #[track_caller]
    pub fn where_(&self, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        let inputs = smallvec![self.into(), yes.into(), no.into()];
        apply1(&math::where_::WHERE, inputs, Attrs::None, Source::here())
    }

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

    /// The axes in another order; without a copy.
    #[track_caller]
    pub fn transpose(&self, order: &[i64]) -> Result<Tensor> {
        let source = Source::here();
        let shape = self.shape();
        let order = order
            .iter()
            .map(|a| shape.axis("transpose", *a))
            .collect::<Result<_>>()
            .map_err(|e| e.at(source))?;
        apply1(&shape::transpose::TRANSPOSE, smallvec![self.into()], Attrs::Order(order), source)
    }

    /// The last two axes swapped; without a copy.
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        let source = Source::here();
        let rank = self.rank();
        if rank < 2 {
            let what = format!("{} has no two axes to swap", self.shape());
            return Err(
                bad_argument("transpose", what, "use a tensor of rank 2 or more").at(source)
            );
        }
        let mut order: tonnage_core::Sizes = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        apply1(&shape::transpose::TRANSPOSE, smallvec![self.into()], Attrs::Order(order), source)
    }

    /// A part of the leading axes; without a copy.
    ///
    /// ```
    /// use tonnage::{Part, tensor};
    /// let x = tensor([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.slice(&[Part::ALL, (1..).into()])?.to_vec::<i32>()?, [2, 3, 5, 6]);
    /// assert_eq!(x.slice(&[(-1..).into(), Part::ALL.by(-1)])?.to_vec::<i32>()?, [6, 5, 4]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn slice(&self, parts: &[Part]) -> Result<Tensor> {
        let source = Source::here();
        let shape = self.shape();
        if parts.len() > shape.rank() {
            let what = format!("{} parts for the shape {shape}", parts.len());
            return Err(bad_argument("slice", what, "give at most one an axis").at(source));
        }
        let slices = shape
            .iter()
            .enumerate()
            .map(|(i, dim)| parts.get(i).unwrap_or(&Part::ALL).resolve("slice", dim))
            .collect::<Result<_>>()
            .map_err(|e| e.at(source))?;
        apply1(&shape::slice::SLICE, smallvec![self.into()], Attrs::Slices(slices), source)
    }

    /// The same elements under another shape; one length may be -1, for what is left.
    ///
    /// ```
    /// let x = tonnage::range(0i32, 6, 1)?.reshape(&[2, -1])?;
    /// assert_eq!(x.shape().to_string(), "[2, 3]");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, lengths: &[i64]) -> Result<Tensor> {
        let source = Source::here();
        let to = self.completed(lengths).map_err(|e| e.at(source))?;
        apply1(&shape::reshape::RESHAPE, smallvec![self.into()], Attrs::Shape(to), source)
    }

    fn completed(&self, lengths: &[i64]) -> Result<Shape> {
        let open = lengths.iter().filter(|n| **n == -1).count();
        if open > 1 || lengths.iter().any(|n| *n < -1) {
            let what = format!("the shape {lengths:?}");
            return Err(bad_argument("reshape", what, "use lengths, and -1 at most once"));
        }
        let known = lengths
            .iter()
            .filter(|n| **n >= 0)
            .fold(Dim::Known(1), |n, d| n.times(&Dim::Known(*d as usize)));
        let rest = self.shape().elements().divided_by(&known);
        Ok(lengths
            .iter()
            .map(|n| if *n < 0 { rest.clone() } else { Dim::Known(*n as usize) })
            .collect())
    }

    /// Stretched to a shape; without a copy.
    #[track_caller]
    pub fn broadcast_to(&self, to: impl Into<Shape>) -> Result<Tensor> {
        let attrs = Attrs::Shape(to.into());
        apply1(&shape::broadcast_to::BROADCAST_TO, smallvec![self.into()], attrs, Source::here())
    }

    /// The product of matrices, batched over leading axes. A transposed operand (`x.t()?`) is read as it
    /// lies: no copy is made.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        apply1(&linalg::matmul::MATMUL, smallvec![self.into(), other.into()], attrs, Source::here())
    }

    /// Positive numbers that add up to 1 along an axis.
    #[track_caller]
    pub fn softmax(&self, axis: i64) -> Result<Tensor> {
        let source = Source::here();
        let axis = self.shape().axis("softmax", axis).map_err(|e| e.at(source))?;
        apply1(&nn::softmax::SOFTMAX, smallvec![self.into()], Attrs::Axis(axis), source)
    }
}

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
        let mut made = apply(op, smallvec![self.into()], Attrs::Count(k), Source::here())?;
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

    /// The lower triangle L with L * L^T = this, of symmetric positive definite matrices.
    #[track_caller]
    pub fn cholesky(&self) -> Result<Tensor> {
        let op = &linalg::cholesky::CHOLESKY;
        apply1(op, smallvec![self.into()], Attrs::None, Source::here())
    }

    /// The largest in each window of `[batch, height, width, channels]`.
    #[track_caller]
    pub fn max_pool(
        &self,
        size: [usize; 2],
        stride: [usize; 2],
        padding: [[usize; 2]; 2],
    ) -> Result<Tensor> {
        let attrs = Attrs::Window { size, stride, padding };
        apply1(&nn::max_pool::MAX_POOL, smallvec![self.into()], attrs, Source::here())
    }
}

/// The right side of an elementwise op: a tensor, borrowed or moved in, or a number, which takes the
/// tensor's dtype.
pub trait Operand {
    #[doc(hidden)]
    fn side(&self) -> Side<'_>;
}

#[doc(hidden)]
pub enum Side<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

impl Operand for &Tensor {
    fn side(&self) -> Side<'_> {
        Side::Tensor(self)
    }
}

impl Operand for Tensor {
    fn side(&self) -> Side<'_> {
        Side::Tensor(self)
    }
}

macro_rules! numbers {
    ($($T:ty),*) => {$(
        impl Operand for $T {
            fn side(&self) -> Side<'_> {
                Side::Number((*self).into())
            }
        }
    )*};
}
numbers!(f64, f32, i64, i32, i16, i8, u64, u32, u16, u8, usize, bool);

/// A number as a tensor of the other side's dtype.
pub(crate) fn number(
    op: &'static OpDef,
    value: Scalar,
    dtype: DType,
    source: Source,
) -> Result<Tensor> {
    if !value.fits(dtype) {
        let what = format!("{value} does not fit a tensor of dtype {dtype}");
        let help = "cast the tensor, or use a number of its kind";
        return Err(bad_argument(op.name, what, help).at(source));
    }
    make::fill(value, dtype, Shape::scalar(), source)
}

pub(crate) fn binary_op(
    op: &'static OpDef,
    left: Input,
    right: impl Operand,
    source: Source,
) -> Result<Tensor> {
    let inputs: Inputs = match right.side() {
        Side::Tensor(tensor) => smallvec![left, Input::Borrowed(tensor)],
        Side::Number(value) => {
            let number = number(op, value, left.tensor().dtype(), source)?;
            smallvec![left, Input::Owned(number)]
        }
    };
    apply1(op, inputs, Attrs::None, source)
}
