//! What `f32` and `f64` have in common, as far as the functions beside this file need it.
//!
//! Every method is a handful of vector instructions at every level. Where the two types need
//! polynomials of different degree, [`Curves`] has them, so that each function is written once.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::curves::Curves;
use crate::Isa;

/// A float that the functions are written for.
pub trait MathFloat:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Curves
{
    #![allow(missing_docs, reason = "constants named by their value")]
    const ZERO: Self;
    const HALF: Self;
    const ONE: Self;
    const TWO: Self;
    const INFINITY: Self;
    const NAN: Self;
    const LN_2: Self;
    const LOG2_E: Self;
    const FRAC_PI_2: Self;
    const FRAC_PI_4: Self;
    const PI: Self;
    /// tan(pi/8), about.
    const TAN_PI_8: Self;
    /// What FRAC_PI_2 lacks to pi/2.
    const FRAC_PI_2_LOW: Self;
    /// From here on x^2 + 1 is x^2.
    const BIG: Self;
    /// The smallest normal number.
    const TINY: Self;
    /// 2 to the number of mantissa bits: from here on every number is integral.
    const INTEGRAL: Self;
    /// 1.5 * INTEGRAL: adding it leaves the nearest integer in the low bits.
    const MAGIC: Self;
    /// MAGIC plus twice the exponent's bias: adding it to n leaves in the low bits what `pow2` needs.
    const SHIFTER: Self;
    /// Below this a function with f(x) = x + O(x^2) gives x.
    const SMALL: Self;
    /// ln 2 with trailing zeros, so that a small integer times it is exact, and the rest.
    const LN_2_HIGH: Self;
    const LN_2_LOW: Self;
    /// Beyond these exp overflows, or is zero.
    const EXP_HIGH: Self;
    const EXP_LOW: Self;
    /// Beyond these expm1 overflows, or is -1.
    const EXPM1_HIGH: Self;
    const EXPM1_LOW: Self;
    /// artanh(1/2), about.
    const TANH_SPLIT: Self;
    /// Beyond this tanh is 1.
    const TANH_ONE: Self;

    /// From here on erfc is 0.
    const ERFC_ZERO: Self;
    /// From here on x e^-x is 0.
    const PRODUCT_FAR: Self;

    /// `self * b + c`, rounded once where that is an instruction and twice where it is not.
    fn fma<I: Isa>(self, b: Self, c: Self) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    /// With the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Integral values by one instruction; only where `Isa::ROUND`.
    fn round_even_at_once(self) -> Self;
    fn floor_at_once(self) -> Self;
    fn ceil_at_once(self) -> Self;
    fn is_nan(self) -> bool;
    /// The upper half of the mantissa: its square is exact.
    fn upper(self) -> Self;
    /// Two factors whose product is 2^n, for `shifted` = n + SHIFTER, also where 2^n itself is
    /// subnormal or just beyond the largest number.
    fn pow2(shifted: Self) -> (Self, Self);
    /// 2^(n-1) for `shifted` = n + SHIFTER and n above the subnormal numbers' exponents.
    fn half_pow2(shifted: Self) -> Self;
    /// m in [sqrt(1/2), sqrt(2)) and integral e with m * 2^e = self, for positive normal numbers.
    fn split(self) -> (Self, Self);
    /// 2^p with p above the mantissa's bits, and p: makes subnormal numbers normal.
    const LIFT: (Self, Self);

    /// r in [-pi/4, pi/4], what r lacks, and the low bits of n, with r + n * pi/2 = self, for |self|
    /// up to [`MathFloat::TRIG_FAST`].
    fn quadrant(self) -> (Self, Self, u32);
    const TRIG_FAST: Self;
    /// By the platform's own function: for the few arguments that `quadrant` cannot reduce.
    fn sin_slow(self) -> Self;
    fn cos_slow(self) -> Self;
    fn tan_slow(self) -> Self;
}

/// `if condition { a } else { b }` of two values that are there: a blend, never a jump.
#[inline(always)]
pub fn select<T: Copy>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}
