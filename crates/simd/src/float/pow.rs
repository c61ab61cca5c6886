//! Powers.

use super::curves::poly;
use super::exp::{exp, exp_sum};
use super::log::log;
use super::real::{MathFloat, select};
use super::round::floor;
use crate::Isa;

/// Powers: the two floats take different ways to the extra bits that the logarithm needs.
pub trait Pow: Sized {
    /// x^y, with libm's special cases.
    fn pow<I: Isa>(x: Self, y: Self) -> Self;
}

/// The sign and the special cases of x^y, given `size` = |x|^y for ordinary arguments.
#[inline(always)]
fn finish<I: Isa, T: MathFloat>(x: T, y: T, size: T) -> T {
    let a = x.abs();
    let half = T::HALF * y;
    let integral = floor::<I, T>(y) == y;
    let odd = integral & (floor::<I, T>(half) != half);
    let size = select(a == T::ONE, T::ONE, size);
    // Infinite y: |x| = 1 is done, and otherwise the logarithm's sign has decided already.
    let signed = select(odd, size.copysign(x), size);
    let out = select((x < T::ZERO) & !integral & (a != T::INFINITY), T::NAN, signed);
    let out = select(x.is_nan() | y.is_nan(), T::NAN, out);
    select((y == T::ZERO) | (x == T::ONE), T::ONE, out)
}

impl Pow for f32 {
    #[inline(always)]
    fn pow<I: Isa>(x: f32, y: f32) -> f32 {
        // e^(y ln |x|) in f64 has bits to spare: the result is all but correctly rounded.
        let size = exp::<I, f64>(f64::from(y) * log::<I, f64>(f64::from(x.abs()))) as f32;
        finish::<I, f32>(x, y, size)
    }
}

/// a * b as a sum of two numbers.
#[inline(always)]
pub(super) fn product<I: Isa>(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    if I::FMA {
        return (p, a.mul_add(b, -p));
    }
    let (ah, bh) = (a.upper(), b.upper());
    let (al, bl) = (a - ah, b - bh);
    (p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
}

/// a + b as a sum of two numbers, |a| >= |b|.
#[inline(always)]
pub(super) fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// ln x as a sum of two numbers, to about 2^-65 of its value: y ln x is as large as 709, and ten
/// bits more than a float has are what keeps its power right to the last.
#[inline(always)]
fn log_double<I: Isa>(x: f64) -> (f64, f64) {
    let (lift, shift) = f64::LIFT;
    let subnormal = x < f64::TINY;
    let (m, e) = select(subnormal, x * lift, x).split();
    let e = e - select(subnormal, shift, 0.0);
    // s = f / (2 + f); ln m = 2 s + 2/3 s^3 + s^5 (...), the first two terms in two numbers.
    let f = m - 1.0;
    let (u, u_low) = sum(2.0, f);
    let s = f / u;
    let (p, p_low) = product::<I>(s, u);
    let s_low = ((f - p) - p_low - s * u_low) / u;
    let (z, z_low) = product::<I>(s, s);
    let z_low = z_low + 2.0 * s * s_low;
    let tail = poly!(
        I,
        z,
        0.4,
        0.28571428571429364,
        0.2222222222165623,
        0.18181818335314717,
        0.15384594970861956,
        0.1333480424004764,
        0.11706248492119405,
        0.1172305153847758
    );
    let (third, third_low) = (0.6666666666666666, 3.700743415417188e-17);
    let (c, c_low) = sum(third, z * tail);
    let c_low = c_low + third_low;
    let (sz, sz_low) = product::<I>(s, z);
    let sz_low = sz_low + s * z_low + s_low * z;
    let (t, t_low) = product::<I>(sz, c);
    let t_low = t_low + sz * c_low + sz_low * c;
    let (h, h_low) = sum(2.0 * s, t);
    let h_low = h_low + t_low + 2.0 * s_low;
    // e times the high part is exact: its last 21 bits are zero.
    let (out, out_low) = sum(e * f64::LN_2_HIGH, h);
    let (out, out_low) = select(e == 0.0, (h, 0.0), (out, out_low));
    let low = out_low + h_low + e * f64::LN_2_LOW;
    sum(out, low)
}

impl Pow for f64 {
    #[inline(always)]
    fn pow<I: Isa>(x: f64, y: f64) -> f64 {
        let a = x.abs();
        let (l, l_low) = log_double::<I>(a);
        // At the ends there is a limit and no digits to care for.
        let edge = (a == 0.0) | (a == f64::INFINITY);
        let l = select(edge, select(a == 0.0, f64::NEG_INFINITY, f64::INFINITY), l);
        let (p, p_low) = product::<I>(y, l);
        let low = p_low + y * l_low;
        let ordinary = !edge & (p.abs() < f64::EXP_HIGH + 36.0);
        let size = exp_sum::<I, f64>(p, select(ordinary, low, 0.0), 1.0);
        finish::<I, f64>(x, y, size)
    }
}
