//! Elementwise ops: one result an element, broadcast.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{DType, Result, Source};
use tonnage_ops::math;

use super::{Operand, binary_op};
use crate::dispatch::apply1;
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
}
