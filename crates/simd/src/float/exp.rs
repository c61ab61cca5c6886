//! The exponential and what is made of it.

use super::real::{MathFloat, select};
use crate::Isa;

/// r and n + SHIFTER with x = r + n ln 2, |r| <= ln(2) / 2; x within the bounds of `exp`.
#[inline(always)]
pub(super) fn reduce<I: Isa, T: MathFloat>(x: T) -> (T, T) {
    let shifted = x.fma::<I>(T::LOG2_E, T::SHIFTER);
    let n = shifted - T::SHIFTER;
    let r = n.fma::<I>(-T::LN_2_LOW, n.fma::<I>(-T::LN_2_HIGH, x));
    (r, shifted)
}

/// NaN stays NaN: each comparison with it is false.
#[inline(always)]
fn bounded<T: MathFloat>(x: T) -> T {
    let x = select(x > T::EXP_HIGH, T::EXP_HIGH, x);
    select(x < T::EXP_LOW, T::EXP_LOW, x)
}

/// factor * e^r * 2^n, for `shifted` = n + SHIFTER.
#[inline(always)]
pub(super) fn raise<I: Isa, T: MathFloat>(r: T, shifted: T, factor: T) -> T {
    let (low, high) = T::pow2(shifted);
    let q = (r * r).fma::<I>(T::exp_poly::<I>(r), r);
    // The factor inside saves a rounding.
    q.fma::<I>(factor, factor) * low * high
}

/// e^x. Overflows to infinity and underflows through the subnormal numbers to zero, as libm's does.
#[inline(always)]
pub fn exp<I: Isa, T: MathFloat>(x: T) -> T {
    let (r, n) = reduce::<I, T>(bounded(x));
    raise::<I, T>(r, n, T::ONE)
}

/// factor * e^(x + low) for a `low` of a few bits: what a product's rounding has lost.
#[inline(always)]
pub fn exp_sum<I: Isa, T: MathFloat>(x: T, low: T, factor: T) -> T {
    let (r, n) = reduce::<I, T>(bounded(x));
    raise::<I, T>(r + low, n, factor)
}

/// e^x / 2, which is finite a little longer than e^x.
#[inline(always)]
fn half_exp<I: Isa, T: MathFloat>(x: T) -> T {
    let (r, n) = reduce::<I, T>(bounded(x));
    raise::<I, T>(r, n, T::HALF)
}

/// e^x - 1, exact to the last bits near 0, where `exp(x) - 1` has none left.
#[inline(always)]
pub fn expm1<I: Isa, T: MathFloat>(x: T) -> T {
    let within = select(x > T::EXPM1_HIGH, T::EXPM1_HIGH, x);
    let within = select(x < T::EXPM1_LOW, T::EXPM1_LOW, within);
    let (r, n) = reduce::<I, T>(within);
    // Half of 2^n q + (2^n - 1), for 2^n itself may overflow where the result does not.
    let scale = T::half_pow2(n);
    let q = (r * r).fma::<I>(T::exp_poly::<I>(r), r);
    let half = scale.fma::<I>(q, scale - T::HALF);
    select(x.abs() < T::SMALL, x, half + half)
}

/// sinh x.
#[inline(always)]
pub fn sinh<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    let e = expm1::<I, T>(select(a < T::ONE, a, T::ONE));
    let small = T::HALF * (e + e / (e + T::ONE));
    let h = half_exp::<I, T>(a);
    let large = h - T::HALF * T::HALF / h;
    let y = select(a < T::ONE, small, large);
    select(a < T::SMALL, a, y).copysign(x)
}

/// cosh x.
#[inline(always)]
pub fn cosh<I: Isa, T: MathFloat>(x: T) -> T {
    let h = half_exp::<I, T>(x.abs());
    h + T::HALF * T::HALF / h
}

/// tanh x.
#[inline(always)]
pub fn tanh<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    let z = a * a;
    let small = (a * z).fma::<I>(T::tanh_poly::<I>(z), a);
    // 1 - 2 / (e^2a + 1), with e^2a by halved constants: a is not doubled first, and half of it is
    // what one power of 2 gives. Beyond TANH_ONE the quotient is below half an ULP of 1.
    let within = select(a > T::TANH_ONE, T::TANH_ONE, a);
    let shifted = within.fma::<I>(T::TWO * T::LOG2_E, T::SHIFTER);
    let n = shifted - T::SHIFTER;
    let r = n.fma::<I>(-(T::HALF * T::LN_2_HIGH), within);
    let r = n.fma::<I>(-(T::HALF * T::LN_2_LOW), r);
    let scale = T::half_pow2(shifted);
    let half = scale.fma::<I>(r * T::tanh_exp::<I>(r), scale + T::HALF);
    let large = T::ONE - T::ONE / half;
    // Where tanh passes 1/2, so that the difference loses nothing.
    select(a < T::TANH_SPLIT, small, large).copysign(x)
}

/// x / (1 + e^-x); below 0 down to the subnormal numbers, and -0 at minus infinity.
#[inline(always)]
pub fn silu<I: Isa, T: MathFloat>(x: T) -> T {
    weighted::<I, T>(x, x.abs(), T::ZERO)
}

/// x / (1 + e^-t) for t = `size` + `low` with the sign of x: `size` is not negative, and `low` is a few
/// bits that its rounding lost.
#[inline(always)]
pub(super) fn weighted<I: Isa, T: MathFloat>(x: T, size: T, low: T) -> T {
    let within = select(size > T::PRODUCT_FAR, T::PRODUCT_FAR, size);
    let (r, n) = reduce::<I, T>(-within);
    let r = r - low;
    let z = raise::<I, T>(r, n, T::ONE);
    // x as a factor, not times z: z is subnormal, or zero, where x z is not. The bound keeps infinity
    // times zero away.
    let a = x.abs();
    let small = raise::<I, T>(r, n, select(a > T::PRODUCT_FAR, T::PRODUCT_FAR, a));
    select(x < T::ZERO, -small, x) / (T::ONE + z)
}
