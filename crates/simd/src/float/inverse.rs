//! Inverse trigonometric functions, and the angle and length of a pair.

use super::real::{MathFloat, select};
use crate::Isa;

/// asin(s) for z = s^2, s <= 1/2.
#[inline(always)]
fn asin_reduced<I: Isa, T: MathFloat>(s: T, z: T) -> T {
    (s * z).fma::<I>(T::asin_poly::<I>(z), s)
}

/// asin x; NaN beyond 1.
#[inline(always)]
pub fn asin<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    // Near 1, from the half angle: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
    let near = a <= T::HALF;
    let z = select(near, a * a, T::HALF * (T::ONE - a));
    let p = asin_reduced::<I, T>(select(near, a, z.sqrt()), z);
    let y = select(near, p, T::FRAC_PI_2 - (p + p - T::FRAC_PI_2_LOW));
    y.copysign(x)
}

/// acos x; NaN beyond 1.
#[inline(always)]
pub fn acos<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    let near = a <= T::HALF;
    let z = select(near, a * a, T::HALF * (T::ONE - a));
    let p = asin_reduced::<I, T>(select(near, x, z.sqrt()), z);
    let twice = p + p;
    let low = T::FRAC_PI_2_LOW;
    let far = select(x < T::ZERO, T::PI - (twice - (low + low)), twice);
    select(near, T::FRAC_PI_2 - (p - low), far)
}

/// atan(q) for 0 <= q <= 1.
#[inline(always)]
fn atan_unit<I: Isa, T: MathFloat>(q: T) -> T {
    // tan(pi/8), as sqrt(2) - 1, to a few bits: where it lies exactly does not matter.
    let steep = q > T::TAN_PI_8;
    let t = select(steep, (q - T::ONE) / (q + T::ONE), q);
    let z = t * t;
    let y = (t * z).fma::<I>(T::atan_poly::<I>(z), t);
    select(steep, T::FRAC_PI_4 + (y + T::HALF * T::FRAC_PI_2_LOW), y)
}

/// atan x.
#[inline(always)]
pub fn atan<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    let large = a > T::ONE;
    let y = atan_unit::<I, T>(select(large, T::ONE / a, a));
    select(large, T::FRAC_PI_2 - (y - T::FRAC_PI_2_LOW), y).copysign(x)
}

/// The angle of the point (x, y), from -pi to pi; libm's special cases.
#[inline(always)]
pub fn atan2<I: Isa, T: MathFloat>(y: T, x: T) -> T {
    let (a, b) = (y.abs(), x.abs());
    let swap = a > b;
    let quotient = select(swap, b, a) / select(swap, a, b);
    // 0/0 lies on the axis; infinity over infinity on the diagonal.
    let quotient = select((a == T::ZERO) & (b == T::ZERO), T::ZERO, quotient);
    let quotient = select((a == T::INFINITY) & (b == T::INFINITY), T::ONE, quotient);
    let low = T::FRAC_PI_2_LOW;
    let r = atan_unit::<I, T>(quotient);
    let r = select(swap, T::FRAC_PI_2 - (r - low), r);
    // The sign of x counts also for -0.
    let left = T::ONE.copysign(x) < T::ZERO;
    let r = select(left, T::PI - (r - (low + low)), r);
    select(x.is_nan() | y.is_nan(), T::NAN, r.copysign(y))
}

/// sqrt(x^2 + y^2) without overflow on the way; infinite where either is.
#[inline(always)]
pub fn hypot<I: Isa, T: MathFloat>(x: T, y: T) -> T {
    let (a, b) = (x.abs(), y.abs());
    let (least, most) = (select(a < b, a, b), select(a < b, b, a));
    let q = least / most;
    let h = most * (q * q + T::ONE).sqrt();
    let h = select(most == T::ZERO, T::ZERO, h);
    let h = select(x.is_nan() | y.is_nan(), T::NAN, h);
    select((a == T::INFINITY) | (b == T::INFINITY), T::INFINITY, h)
}
