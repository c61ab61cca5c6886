//! Sine, cosine, tangent.
//!
//! The argument is reduced by pi/2 held in parts, which does up to [`MathFloat::TRIG_FAST`] = 10^6. A
//! loop over these functions must send larger arguments to [`MathFloat::sin_slow`] and
//! [`MathFloat::cos_slow`], the platform's own functions: they are rare, and a branch-free reduction
//! for them would slow down all the others.

use super::real::{MathFloat, select};
use crate::Isa;

/// sin r and cos r for |r| <= pi/4.
#[inline(always)]
pub fn sin_cos_reduced<I: Isa, T: MathFloat>(r: T) -> (T, T) {
    // Adding -0 changes nothing, and LLVM knows it.
    parts::<I, T>(r, -T::ZERO, -T::ZERO)
}

/// sin r + sin_low and cos r + cos_low.
#[inline(always)]
fn parts<I: Isa, T: MathFloat>(r: T, sin_low: T, cos_low: T) -> (T, T) {
    let z = r * r;
    let sin = (r * z).fma::<I>(T::sin_poly::<I>(z), sin_low) + r;
    // 1 - z/2 loses bits that `rest` brings back.
    let half = T::HALF * z;
    let one_less = T::ONE - half;
    let rest = (T::ONE - one_less) - half;
    let cos = one_less + (z * z).fma::<I>(T::cos_poly::<I>(z), rest + cos_low);
    (sin, cos)
}

/// Sine and cosine of what is left of x after quarter turns, and how many those are.
#[inline(always)]
fn reduced<I: Isa, T: MathFloat>(x: T) -> (T, T, u32) {
    let (r, low, n) = x.quadrant();
    let (sin, cos) = parts::<I, T>(r, low, -(r * low));
    (sin, cos, n)
}

/// sin x for |x| <= TRIG_FAST.
#[inline(always)]
pub fn sin<I: Isa, T: MathFloat>(x: T) -> T {
    let (sin, cos, n) = reduced::<I, T>(x);
    let y = select(n & 1 == 0, sin, cos);
    select(x.abs() < T::SMALL, x, select(n & 2 == 0, y, -y))
}

/// cos x for |x| <= TRIG_FAST.
#[inline(always)]
pub fn cos<I: Isa, T: MathFloat>(x: T) -> T {
    let (sin, cos, n) = reduced::<I, T>(x);
    let y = select(n & 1 == 0, cos, sin);
    select(n.wrapping_add(1) & 2 == 0, y, -y)
}

/// tan x for |x| <= TRIG_FAST.
#[inline(always)]
pub fn tan<I: Isa, T: MathFloat>(x: T) -> T {
    let (sin, cos, n) = reduced::<I, T>(x);
    let odd = n & 1 == 1;
    let y = select(odd, -cos, sin) / select(odd, sin, cos);
    select(x.abs() < T::SMALL, x, y)
}

/// True where `sin` and `cos` are beyond their reach. NaN is not: it stays NaN all the way.
#[inline(always)]
pub fn beyond<T: MathFloat>(x: T) -> bool {
    x.abs() > T::TRIG_FAST
}
