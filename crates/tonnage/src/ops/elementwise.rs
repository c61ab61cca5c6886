//! Elementwise ops: one result an element, broadcast.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{DType, Result, Source};
use tonnage_ops::math;

use super::{Operand, binary_op, operand};
use crate::dispatch::apply1;
use crate::make;
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
        #[allow(
            clippy::wrong_self_convention,
            reason = "`self` is a tensor or a reference: giving it up lends its bytes"
        )]
        pub trait Elementwise: Sized {
            $($(#[$doc])*
            #[track_caller]
            fn $name(self $(, $arg: $T)?) -> Result<Tensor>;)*

            /// Every element in another dtype; the tensor itself where that is its dtype, and no copy of it: as the
            /// products of a function, those of eager mode then read it as it lies.
            #[track_caller]
            fn cast(self, dtype: DType) -> Result<Tensor>;
        }

        impl Elementwise for Tensor {
            $(#[track_caller]
            fn $name(self $(, $arg: $T)?) -> Result<Tensor> {
                apply1(&$op, smallvec![self.into()], $attrs, Source::here())
            })*

            #[track_caller]
            fn cast(self, dtype: DType) -> Result<Tensor> {
                if self.dtype() == dtype {
                    return Ok(self);
                }
                let attrs = Attrs::DType(dtype);
                apply1(&math::cast::CAST, smallvec![self.into()], attrs, Source::here())
            }
        }

        impl Elementwise for &Tensor {
            $(#[track_caller]
            fn $name(self $(, $arg: $T)?) -> Result<Tensor> {
                apply1(&$op, smallvec![self.into()], $attrs, Source::here())
            })*

            #[track_caller]
            fn cast(self, dtype: DType) -> Result<Tensor> {
                if self.dtype() == dtype {
                    return Ok(self.clone());
                }
                let attrs = Attrs::DType(dtype);
                apply1(&math::cast::CAST, smallvec![self.into()], attrs, Source::here())
            }
        }
    };
}

elementwise! {
    /// Every element with the other sign.
    neg => math::neg::NEG, Attrs::None;
    /// The absolute value of every element.
    abs => math::abs::ABS, Attrs::None;
    /// -1, 0 or 1 for every element.
    sign => math::sign::SIGN, Attrs::None;
    /// The next whole number below every element.
    floor => math::rounding::FLOOR, Attrs::None;
    /// The next whole number above every element.
    ceil => math::rounding::CEIL, Attrs::None;
    /// The nearest whole number; halves go to the even one.
    round => math::rounding::ROUND, Attrs::None;
    /// Every element times itself.
    square => math::square::SQUARE, Attrs::None;
    /// The square root of every element; NaN below 0.
    sqrt => math::sqrt::SQRT, Attrs::None;
    /// One over the square root of every element.
    rsqrt => math::rsqrt::RSQRT, Attrs::None;
    /// One over every element.
    reciprocal => math::reciprocal::RECIPROCAL, Attrs::None;
    /// e to the power of every element.
    exp => math::exp::EXP, Attrs::None;
    /// e to the power of every element, less 1.
    expm1 => math::expm1::EXPM1, Attrs::None;
    /// The natural logarithm of every element.
    log => math::log::LOG, Attrs::None;
    /// The natural logarithm of 1 more than every element.
    log1p => math::log1p::LOG1P, Attrs::None;
    /// The sine of every element.
    sin => math::sin::SIN, Attrs::None;
    /// The cosine of every element.
    cos => math::cos::COS, Attrs::None;
    /// The tangent of every element.
    tan => math::tan::TAN, Attrs::None;
    /// The inverse of the sine; NaN beyond 1.
    asin => math::asin::ASIN, Attrs::None;
    /// The inverse of the cosine; NaN beyond 1.
    acos => math::acos::ACOS, Attrs::None;
    /// The inverse of the tangent.
    atan => math::atan::ATAN, Attrs::None;
    /// The hyperbolic sine of every element.
    sinh => math::sinh::SINH, Attrs::None;
    /// The hyperbolic cosine of every element.
    cosh => math::cosh::COSH, Attrs::None;
    /// The hyperbolic tangent of every element.
    tanh => math::tanh::TANH, Attrs::None;
    /// The inverse of the hyperbolic sine.
    asinh => math::asinh::ASINH, Attrs::None;
    /// The inverse of the hyperbolic cosine; NaN below 1.
    acosh => math::acosh::ACOSH, Attrs::None;
    /// The inverse of the hyperbolic tangent; NaN beyond 1.
    atanh => math::atanh::ATANH, Attrs::None;
    /// `1 / (1 + exp(-x))`
    sigmoid => math::sigmoid::SIGMOID, Attrs::None;
    /// `log(1 + exp(x))`
    softplus => math::softplus::SOFTPLUS, Attrs::None;
    /// `x / (1 + |x|)`
    softsign => math::softsign::SOFTSIGN, Attrs::None;
    /// The error function.
    erf => math::erf::ERF, Attrs::None;
    /// 1 less the error function.
    erfc => math::erfc::ERFC, Attrs::None;
    /// The logarithm of the absolute value of the gamma function.
    lgamma => math::lgamma::LGAMMA, Attrs::None;
    /// The slope of [`Elementwise::lgamma`].
    digamma => math::digamma::DIGAMMA, Attrs::None;
    /// The slope of [`Elementwise::digamma`] of an order: 1 for the first, 2 for the slope of that.
    polygamma(order: usize) => math::polygamma::POLYGAMMA, Attrs::Count(order);
    /// Every element, or 0 where it is negative.
    relu => math::relu::RELU, Attrs::None;
    /// Every element clamped to between 0 and 6.
    relu6 => math::relu6::RELU6, Attrs::None;
    /// Every element, times a number where it is negative.
    leaky_relu(slope: f64) => math::leaky_relu::LEAKY_RELU, Attrs::Number(slope.into());
    /// Every element, or a number times `exp(x) - 1` where it is negative.
    elu(alpha: f64) => math::elu::ELU, Attrs::Number(alpha.into());
    /// [`Elementwise::elu`] with fixed numbers that keep mean and variance.
    selu => math::selu::SELU, Attrs::None;
    /// `x` times the share of the normal distribution below `x`.
    gelu => math::gelu::GELU, Attrs::None;
    /// [`Elementwise::gelu`] by a hyperbolic tangent, as some models were trained with.
    gelu_tanh => math::gelu_tanh::GELU_TANH, Attrs::None;
    /// `x * sigmoid(x)`
    silu => math::silu::SILU, Attrs::None;
    /// `relu6(x + 3) / 6`
    hard_sigmoid => math::hard_sigmoid::HARD_SIGMOID, Attrs::None;
    /// `x * relu6(x + 3) / 6`
    hard_swish => math::hard_swish::HARD_SWISH, Attrs::None;
    /// Where an element is not a number.
    is_nan => math::classification::IS_NAN, Attrs::None;
    /// Where an element is either infinity.
    is_inf => math::classification::IS_INF, Attrs::None;
    /// Where an element is neither NaN nor an infinity.
    is_finite => math::classification::IS_FINITE, Attrs::None;
    /// True where a boolean is false.
    logical_not => math::logical::LOGICAL_NOT, Attrs::None;
    /// Every bit of an integer flipped.
    bitwise_not => math::bitwise::BITWISE_NOT, Attrs::None;
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
        maximum => math::extremum::MAXIMUM;
        /// The smaller one, broadcast.
        minimum => math::extremum::MINIMUM;
        /// The quotient rounded down, broadcast, as Python's `//`.
        floor_div => math::floor_div::FLOOR_DIV;
        /// What is left of the division that rounds down, broadcast, as Python's `%`.
        modulo => math::mod_::MOD;
        /// To the power of the other, broadcast.
        pow => math::pow::POW;
        /// The angle of the point with this as height and the other as width, broadcast.
        atan2 => math::atan2::ATAN2;
        /// The length of the pair of both, broadcast.
        hypot => math::hypot::HYPOT;
        /// The square of the difference, broadcast.
        squared_difference => math::squared_difference::SQUARED_DIFFERENCE;
        /// The quotient, and 0 where the other is 0, broadcast.
        divide_no_nan => math::divide_no_nan::DIVIDE_NO_NAN;
        /// Times the logarithm of the other, and 0 where this is 0, broadcast.
        xlogy => math::xlogy::XLOGY;
        /// Where it is equal, broadcast.
        equal => math::comparison::EQUAL;
        /// Where it differs, broadcast.
        not_equal => math::comparison::NOT_EQUAL;
        /// Where it is less, broadcast.
        less => math::comparison::LESS;
        /// Where it is less or equal, broadcast.
        less_equal => math::comparison::LESS_EQUAL;
        /// Where it is more, broadcast.
        greater => math::comparison::GREATER;
        /// Where it is more or equal, broadcast.
        greater_equal => math::comparison::GREATER_EQUAL;
        /// Where both are true, broadcast.
        logical_and => math::logical::LOGICAL_AND;
        /// Where one or both are true, broadcast.
        logical_or => math::logical::LOGICAL_OR;
        /// Where just one is true, broadcast.
        logical_xor => math::logical::LOGICAL_XOR;
        /// The bits that both integers have, broadcast.
        bitwise_and => math::bitwise::BITWISE_AND;
        /// The bits that one or both integers have, broadcast.
        bitwise_or => math::bitwise::BITWISE_OR;
        /// The bits that just one integer has, broadcast.
        bitwise_xor => math::bitwise::BITWISE_XOR;
        /// The bits shifted left by the other operand, broadcast.
        shift_left => math::bitwise::SHIFT_LEFT;
        /// The bits shifted right by the other operand, broadcast; signed integers keep their sign.
        shift_right => math::bitwise::SHIFT_RIGHT;
    }

    /// Every element clamped to between two bounds, which are numbers or tensors, broadcast.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([-2.0f32, 0.5, 3.0])?;
    /// assert_eq!(x.clip(-1.0, 1.0)?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn clip(&self, low: impl Operand, high: impl Operand) -> Result<Tensor> {
        let (op, source) = (&math::clip::CLIP, Source::here());
        let (low, high) = (low.side(), high.side());
        let low = operand(op, &low, self.dtype(), source)?;
        let high = operand(op, &high, self.dtype(), source)?;
        apply1(op, smallvec![self.into(), low, high], Attrs::None, source)
    }

    /// `self * factor + more`, broadcast; rounded once where the machine can.
    #[track_caller]
    pub fn fma(&self, factor: impl Operand, more: impl Operand) -> Result<Tensor> {
        let (op, source) = (&math::fma::FMA, Source::here());
        let (factor, more) = (factor.side(), more.side());
        let factor = operand(op, &factor, self.dtype(), source)?;
        let more = operand(op, &more, self.dtype(), source)?;
        apply1(op, smallvec![self.into(), factor, more], Attrs::None, source)
    }

    /// Zeros of this tensor's type; takes no bytes.
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        make::fill(0.into(), self.dtype(), self.shape(), Source::here())
    }

    /// Ones of this tensor's type; takes no bytes.
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        make::fill(1.into(), self.dtype(), self.shape(), Source::here())
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
