//! Rounding to integral values, square roots and their inverse.
//!
//! Below AVX2 rounding is no instruction: adding and taking away 2^mantissa rounds to even there.

use super::real::{MathFloat, select};
use crate::Isa;

/// To the nearest integer, half to even; -0 and the sign of small numbers are kept.
#[inline(always)]
pub fn round<I: Isa, T: MathFloat>(x: T) -> T {
    if I::ROUND {
        return x.round_even_at_once();
    }
    let a = x.abs();
    select(a < T::INTEGRAL, ((a + T::INTEGRAL) - T::INTEGRAL).copysign(x), x)
}

/// Down.
#[inline(always)]
pub fn floor<I: Isa, T: MathFloat>(x: T) -> T {
    if I::ROUND {
        return x.floor_at_once();
    }
    let r = round::<I, T>(x);
    select(r > x, r - T::ONE, r).copysign(x)
}

/// Up.
#[inline(always)]
pub fn ceil<I: Isa, T: MathFloat>(x: T) -> T {
    if I::ROUND {
        return x.ceil_at_once();
    }
    let r = round::<I, T>(x);
    select(r < x, r + T::ONE, r).copysign(x)
}

/// Correctly rounded; NaN below zero.
#[inline(always)]
pub fn sqrt<I: Isa, T: MathFloat>(x: T) -> T {
    x.sqrt()
}

/// 1 / sqrt(x), at most 1.5 ULP: rounded twice.
#[inline(always)]
pub fn rsqrt<I: Isa, T: MathFloat>(x: T) -> T {
    T::ONE / x.sqrt()
}
