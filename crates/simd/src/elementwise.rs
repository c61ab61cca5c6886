//! The maps: each primitive is a line.
//!
//! A line names the primitive, the elements that it is for, and the function. The name is a type
//! without values, which [`map`](super::map) makes loops of and [`prim`](super::prim) finds by
//! dtype.

use bytemuck::Pod;
use tonnage_core::Bool;

use super::float::gamma::Gamma;
use super::float::gelu::ByTangent;
use super::float::sigmoid::Rising;
use super::float::{self, MathFloat, trig};
use super::map::{Map1, Map2, Map3};
use super::number::{Arithmetic, Integer};
use super::remainder::Remainder;
use super::vectorize::Isa;

macro_rules! maps1 {
    ($($(#[$doc:meta])* $Name:ident: $Trait:ident, |$x:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Name;
        impl<T: $Trait + Pod> Map1<T> for $Name {
            type Out = T;
            #[inline(always)]
            fn apply<I: Isa>($x: T) -> T { $f }
        }
    )*};
}

macro_rules! maps2 {
    ($Out:ident; $($(#[$doc:meta])* $Name:ident: $Trait:ident, |$a:ident, $b:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Name;
        impl<T: $Trait + Pod> Map2<T> for $Name {
            type Out = maps2!(@out $Out T);
            #[inline(always)]
            fn apply<I: Isa>($a: T, $b: T) -> Self::Out { $f }
        }
    )*};
    (@out Same $T:ident) => { $T };
    (@out Truth $T:ident) => { Bool };
}

maps1! {
    /// -x; wraps.
    Neg: Arithmetic, |x| x.neg();
    /// |x|; wraps.
    Abs: Arithmetic, |x| x.abs();
    /// -1, 0 or 1; zeros and NaN stay.
    Sign: Arithmetic, |x| x.sign();
    /// x * x
    Square: Arithmetic, |x| x.mul(x);
    /// !x
    Not: Integer, |x| x.not();
}

macro_rules! real_maps1 {
    ($($(#[$doc:meta])* $Name:ident $function:ident;)*) => {
        maps1! { $($(#[$doc])* $Name: MathFloat, |x| float::$function::<I, T>(x);)* }
    };
}

maps1! {
    /// 1 / x
    Reciprocal: MathFloat, |x| T::ONE / x;
}

real_maps1! {
    /// [`float::floor`]
    Floor floor;
    /// [`float::ceil`]
    Ceil ceil;
    /// [`fn@float::round`]
    Round round;
    /// [`float::sqrt`]
    Sqrt sqrt;
    /// [`float::rsqrt`]
    Rsqrt rsqrt;
    /// [`fn@float::exp`]
    Exp exp;
    /// [`float::expm1`]
    Expm1 expm1;
    /// [`fn@float::log`]
    Log log;
    /// [`float::log1p`]
    Log1p log1p;
    /// [`float::asin`]
    Asin asin;
    /// [`float::acos`]
    Acos acos;
    /// [`float::atan`]
    Atan atan;
    /// [`float::sinh`]
    Sinh sinh;
    /// [`float::cosh`]
    Cosh cosh;
    /// [`float::tanh`]
    Tanh tanh;
    /// [`float::asinh`]
    Asinh asinh;
    /// [`float::acosh`]
    Acosh acosh;
    /// [`float::atanh`]
    Atanh atanh;
    /// [`float::softplus`]
    Softplus softplus;
    /// [`float::silu`]
    Silu silu;
    /// [`float::erfc`]
    Erfc erfc;
}

maps1! {
    /// [`Rising::sigmoid`]
    Sigmoid: Rising, |x| T::sigmoid::<I>(x);
    /// [`Rising::erf`]
    Erf: Rising, |x| T::erf::<I>(x);
    /// [`Rising::gelu`]
    Gelu: Rising, |x| T::gelu::<I>(x);
    /// [`ByTangent::gelu_tanh`]
    GeluTanh: ByTangent, |x| T::gelu_tanh::<I>(x);
}

macro_rules! gamma_maps1 {
    ($($(#[$doc:meta])* $Name:ident $above:ident $below:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Name;
        impl<T: Gamma + MathFloat + Pod> Map1<T> for $Name {
            type Out = T;
            #[inline(always)]
            fn apply<I: Isa>(x: T) -> T { T::$above::<I>(x) }
            const RARE: bool = true;
            #[inline(always)]
            fn rare(x: T) -> bool { x < T::ZERO }
            #[inline(always)]
            fn slow<I: Isa>(x: T) -> T { T::$below::<I>(x) }
        }
    )*};
}

gamma_maps1! {
    /// ln |gamma(x)|: [`Gamma::lgamma_above`] and [`Gamma::lgamma_below`]
    Lgamma lgamma_above lgamma_below;
    /// Its slope: [`Gamma::digamma_above`] and [`Gamma::digamma_below`]
    Digamma digamma_above digamma_below;
}

macro_rules! trig_maps1 {
    ($($(#[$doc:meta])* $Name:ident $function:ident $slow:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Name;
        impl<T: MathFloat + Pod> Map1<T> for $Name {
            type Out = T;
            #[inline(always)]
            fn apply<I: Isa>(x: T) -> T { float::$function::<I, T>(x) }
            const RARE: bool = true;
            #[inline(always)]
            fn rare(x: T) -> bool { trig::beyond(x) }
            #[inline(always)]
            fn slow<I: Isa>(x: T) -> T { x.$slow() }
        }
    )*};
}

trig_maps1! {
    /// [`float::sin`]
    Sin sin sin_slow;
    /// [`float::cos`]
    Cos cos cos_slow;
    /// [`float::tan`]
    Tan tan tan_slow;
}

macro_rules! truth_maps1 {
    ($($(#[$doc:meta])* $Name:ident |$x:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Name;
        impl<T: MathFloat + Pod> Map1<T> for $Name {
            type Out = Bool;
            #[inline(always)]
            fn apply<I: Isa>($x: T) -> Bool { ($f).into() }
        }
    )*};
}

truth_maps1! {
    /// Not a number.
    IsNan |x| x.is_nan();
    /// Either infinity.
    IsInf |x| x.abs() == T::INFINITY;
    /// Neither NaN nor an infinity.
    IsFinite |x| x.abs() < T::INFINITY;
}

maps2! { Same;
    /// a + b
    Add: Arithmetic, |a, b| a.add(b);
    /// a - b
    Sub: Arithmetic, |a, b| a.sub(b);
    /// a * b
    Mul: Arithmetic, |a, b| a.mul(b);
    /// The larger; NaN where either is.
    Max: Arithmetic, |a, b| a.max(b);
    /// The smaller; NaN where either is.
    Min: Arithmetic, |a, b| a.min(b);
    /// [`float::atan2`]
    Atan2: MathFloat, |a, b| float::atan2::<I, T>(a, b);
    /// [`float::hypot`]
    Hypot: MathFloat, |a, b| float::hypot::<I, T>(a, b);
    /// [`Gamma::polygamma`]
    Polygamma: Gamma, |a, b| T::polygamma::<I>(a, b);
    /// a & b
    And: Integer, |a, b| a.and(b);
    /// a | b
    Or: Integer, |a, b| a.or(b);
    /// a ^ b
    Xor: Integer, |a, b| a.xor(b);
    /// a << b
    Shl: Integer, |a, b| a.shl(b);
    /// a >> b
    Shr: Integer, |a, b| a.shr(b);
}

macro_rules! quotient_maps2 {
    ($($(#[$doc:meta])* $Name:ident |$a:ident, $b:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Name;
        impl<T: Arithmetic> Map2<T> for $Name {
            type Out = T;
            const VECTORS: bool = T::QUOTIENTS;
            #[inline(always)]
            fn apply<I: Isa>($a: T, $b: T) -> T { $f }
        }
    )*};
}

quotient_maps2! {
    /// a / b
    Div |a, b| a.div(b);
    /// The quotient rounded down.
    FloorDiv |a, b| a.floor_div::<I>(b);
    /// a^b
    Pow |a, b| a.pow::<I>(b);
}

/// The remainder with the divisor's sign.
#[derive(Debug)]
pub struct Mod;

impl<T: Remainder + Pod> Map2<T> for Mod {
    type Out = T;
    const VECTORS: bool = T::QUOTIENTS;
    #[inline(always)]
    fn apply<I: Isa>(a: T, b: T) -> T {
        a.near_modulo::<I>(b)
    }
    const RARE: bool = T::FAR;
    #[inline(always)]
    fn rare(a: T, b: T) -> bool {
        a.is_far(b)
    }
    #[inline(always)]
    fn slow<I: Isa>(a: T, b: T) -> T {
        a.modulo(b)
    }
}

maps2! { Truth;
    /// a = b; false with NaN.
    Equal: Arithmetic, |a, b| (a == b).into();
    /// Not a = b; true with NaN.
    NotEqual: Arithmetic, |a, b| (a != b).into();
    /// a < b
    Less: Arithmetic, |a, b| (a < b).into();
    /// a <= b
    LessEqual: Arithmetic, |a, b| (a <= b).into();
    /// a > b
    Greater: Arithmetic, |a, b| (a > b).into();
    /// a >= b
    GreaterEqual: Arithmetic, |a, b| (a >= b).into();
}

/// `if condition { a } else { b }`, for elements of any type of that width.
#[derive(Debug)]
pub struct Select;

impl<T: Pod> Map3<Bool, T> for Select {
    #[inline(always)]
    fn apply<I: Isa>(condition: Bool, a: T, b: T) -> T {
        float::real::select(condition.get(), a, b)
    }
}

/// a * b + c; rounded once where that is an instruction, twice where it is not.
#[derive(Debug)]
pub struct MulAdd;

impl<T: Arithmetic> Map3<T, T> for MulAdd {
    #[inline(always)]
    fn apply<I: Isa>(a: T, b: T, c: T) -> T {
        a.mul_add::<I>(b, c)
    }
}

/// A map of bytes as one of booleans: any byte but 0 comes in as 1.
#[derive(Debug)]
pub struct OfTruth<M>(std::marker::PhantomData<M>);

impl<M: Map2<u8>> Map2<Bool> for OfTruth<M> {
    type Out = M::Out;
    #[inline(always)]
    fn apply<I: Isa>(a: Bool, b: Bool) -> M::Out {
        M::apply::<I>(a.get() as u8, b.get() as u8)
    }
}

/// Not, of a boolean.
#[derive(Debug)]
pub struct NotTruth;

impl Map1<Bool> for NotTruth {
    type Out = Bool;
    #[inline(always)]
    fn apply<I: Isa>(x: Bool) -> Bool {
        (!x.get()).into()
    }
}
