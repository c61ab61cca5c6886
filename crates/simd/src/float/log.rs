//! The logarithm and what is made of it.

use super::exp::exp;
use super::real::{MathFloat, select};
use crate::Isa;

/// e ln 2 + ln(1 + f) + c.
#[inline(always)]
fn join<I: Isa, T: MathFloat>(e: T, f: T, c: T) -> T {
    let tail = e.fma::<I>(T::LN_2_LOW, T::log_poly::<I>(f) + c);
    e.fma::<I>(T::LN_2_HIGH, f + tail)
}

/// ln x: -infinity at either zero, NaN below it.
#[inline(always)]
pub fn log<I: Isa, T: MathFloat>(x: T) -> T {
    let (lift, shift) = T::LIFT;
    let subnormal = x < T::TINY;
    let (m, e) = select(subnormal, x * lift, x).split();
    let y = join::<I, T>(e - select(subnormal, shift, T::ZERO), m - T::ONE, T::ZERO);
    let y = select(x == T::INFINITY, x, y);
    let y = select(x == T::ZERO, -T::INFINITY, y);
    select(x >= T::ZERO, y, T::NAN)
}

/// ln(1 + x), exact to the last bits near 0; -infinity at -1, NaN below.
#[inline(always)]
pub fn log1p<I: Isa, T: MathFloat>(x: T) -> T {
    let u = T::ONE + x;
    let (m, e) = u.split();
    // What 1 + x has lost, put back to first order; with e = 0 x itself is at hand.
    let lost = select(x < T::ONE, x - (u - T::ONE), T::ONE - (u - x)) / u;
    let near = e == T::ZERO;
    let f = select(near, x, m - T::ONE);
    let y = join::<I, T>(e, f, select(near, T::ZERO, lost));
    let y = select(x == T::INFINITY, x, y);
    let y = select(u == T::ZERO, -T::INFINITY, y);
    let y = select(x.abs() < T::SMALL, x, y);
    select(u >= T::ZERO, y, T::NAN)
}

/// ln(1 + e^x), which is x for large x.
#[inline(always)]
pub fn softplus<I: Isa, T: MathFloat>(x: T) -> T {
    select(x > T::ZERO, x, T::ZERO) + log1p::<I, T>(exp::<I, T>(-x.abs()))
}

/// asinh x.
#[inline(always)]
pub fn asinh<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    // From BIG on the sum is 2a, which may overflow: ln(2a) = ln(a) + ln 2.
    let big = a >= T::BIG;
    let v = a + a * a / (T::ONE + (a * a + T::ONE).sqrt());
    let y = log1p::<I, T>(select(big, a, v)) + select(big, T::LN_2, T::ZERO);
    y.copysign(x)
}

/// acosh x; NaN below 1.
#[inline(always)]
pub fn acosh<I: Isa, T: MathFloat>(x: T) -> T {
    let t = x - T::ONE;
    let big = x >= T::BIG;
    let v = t + (T::TWO * t + t * t).sqrt();
    let y = log1p::<I, T>(select(big, x, v)) + select(big, T::LN_2, T::ZERO);
    select(x >= T::ONE, y, T::NAN)
}

/// atanh x; infinite at 1 and -1, NaN beyond.
#[inline(always)]
pub fn atanh<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    let y = T::HALF * log1p::<I, T>(T::TWO * a / (T::ONE - a));
    select(a < T::SMALL, a, y).copysign(x)
}
