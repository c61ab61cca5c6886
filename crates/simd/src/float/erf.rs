//! The complement of the error function. The function itself is in `sigmoid`.

use super::exp::exp_sum;
use super::real::{MathFloat, select};
use crate::Isa;

/// erfc(a) for a >= 1, down to the subnormal numbers.
#[inline(always)]
pub(super) fn erfc_tail<I: Isa, T: MathFloat>(a: T) -> T {
    // Far out the result is 0; the bound keeps infinities out of the quotients.
    let a = select(a > T::ERFC_ZERO, T::ERFC_ZERO, a);
    let t = (a - T::ERFC_CENTRE) / (a + T::ERFC_CENTRE);
    // e^(-a^2) with the square in two parts: its rounding error would be magnified by a^2.
    let upper = a.upper();
    let low = -((a - upper) * (a + upper));
    exp_sum::<I, T>(-(upper * upper), low, T::erfc_poly::<I>(t) / a)
}

/// 1 - erf x, with relative precision far out on the positive side.
#[inline(always)]
pub fn erfc<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    // 1 - x is exact from 1/2 to 1, where 1 - erf x would lose two bits.
    let near = (-x).fma::<I>(T::erf_poly::<I>(x * x), T::ONE - x);
    let far = erfc_tail::<I, T>(a);
    let far = select(x < T::ZERO, T::TWO - far, far);
    select(a < T::ONE, near, far)
}
