//! The functions that go from one level to another: the logistic one, the error function and `gelu`.
//!
//! `f32` has formulas of its own, with one power of 2 each and no case distinction: what is left to the upper level,
//! `erfc` and the normal distribution, is a power of 2 whose exponent is a polynomial over all that does not round to nothing.
//! That takes a third of the steps of the formulas of `f64`, which tell near from far.
//!
//! Decision: `docs/decisions/exact-formulas-on-gpus.md`.

use std::f64::consts::FRAC_1_SQRT_2;

use super::curves::{Curves, poly};
use super::erf::erfc_tail;
use super::exp::{exp, exp_sum};
use super::real::{MathFloat, select};
use crate::Isa;

/// What the two floats compute each in its way.
pub trait Rising: MathFloat {
    /// 1 / (1 + e^-x); of `f32` 0 where that is not a normal number.
    fn sigmoid<I: Isa>(x: Self) -> Self;
    /// erf x.
    fn erf<I: Isa>(x: Self) -> Self;
    /// x times the share of the normal distribution below x; of `f64` with relative precision also far below 0, of `f32`
    /// to 2^-24 of x there.
    fn gelu<I: Isa>(x: Self) -> Self;
}

/// 1.5 * 2^23 and the exponent's bias: adding it to n leaves in the low bits the exponent of 2^n.
const SHIFTER: f32 = 12_583_039.0;

/// A power of 2 in two parts: 2^n, from -127 on where that is 0, and the fraction of the exponent.
#[inline(always)]
fn parts(exponent: f32) -> (f32, f32) {
    let shifted = exponent + SHIFTER;
    (scale(shifted), exponent - (shifted - SHIFTER))
}

/// 2^n for `shifted` = n + SHIFTER.
#[inline(always)]
fn scale(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits() << 23)
}

impl Rising for f32 {
    #[inline(always)]
    fn sigmoid<I: Isa>(x: f32) -> f32 {
        // Beyond these bounds the sum below is 1, or its reciprocal is no normal number.
        const FAR: f32 = 88.0;
        let x = select(x > FAR, FAR, x);
        let x = select(x < -FAR, -FAR, x);
        let shifted = (-x).fma::<I>(f32::LOG2_E, SHIFTER);
        let n = shifted - SHIFTER;
        let r = n.fma::<I>(-f32::LN_2_LOW, n.fma::<I>(-f32::LN_2_HIGH, -x));
        let power =
            poly!(I, r, 1.0, 1.0, 0.49999994, 0.16666523, 0.041668292, 0.008368532, 0.0013818298);
        let sum = power.fma::<I>(scale(shifted), 1.0);
        // A GPU's reciprocal gives 0 by itself.
        const LARGEST: f32 = 1.0 / f32::MIN_POSITIVE;
        select(sum > LARGEST, 0.0, 1.0 / sum)
    }

    #[inline(always)]
    fn erf<I: Isa>(x: f32) -> f32 {
        // From here on erf is 1.
        const FAR: f32 = 3.93;
        let a = x.abs();
        let a = select(a > FAR, FAR, a);
        // The exponent of erfc(a), as a multiple of a: the relative precision near 0 comes from there.
        let exponent = a * poly!(
            I,
            a,
            -1.627907,
            -0.91844743,
            -0.14827925,
            0.027641105,
            0.00021349978,
            -0.0023863777,
            0.0009025301,
            -0.00016674049,
            1.3017554e-05
        );
        let (scale, f) = parts(exponent);
        // 2^f - 1.
        let less = f * poly!(
            I,
            f,
            f32::LN_2,
            0.24022649,
            0.055503674,
            0.009618311,
            0.0013387382,
            0.00015382109
        );
        (-less).fma::<I>(scale, 1.0 - scale).copysign(x)
    }

    #[inline(always)]
    fn gelu<I: Isa>(x: f32) -> f32 {
        // There the exponent is -127, and the power 0.
        const FAR: f32 = 10.352;
        let a = x.abs();
        let a = select(a > FAR, FAR, a);
        // The exponent of the share of the normal distribution beyond a. The polynomial keeps it until 2^-28, and goes down
        // faster than the share from there on.
        let exponent = poly!(
            I,
            a,
            -1.0,
            -1.151108,
            -0.4591796,
            -0.052591056,
            0.0072079184,
            -0.00025099775,
            -0.000138144,
            2.9181352e-05,
            -1.9810848e-06
        );
        let (scale, f) = parts(exponent);
        let power = poly!(
            I,
            f,
            1.0,
            f32::LN_2,
            0.24022648,
            0.0555036,
            0.009618506,
            0.0013390806,
            0.00015326463
        );
        // x above 0, and -0 below.
        let above = f32::from_bits(x.to_bits().min((-0f32).to_bits()));
        (-(a * power)).fma::<I>(scale, above)
    }
}

impl Rising for f64 {
    #[inline(always)]
    fn sigmoid<I: Isa>(x: f64) -> f64 {
        let z = exp::<I, f64>(-x.abs());
        select(x < 0.0, z, 1.0) / (1.0 + z)
    }

    #[inline(always)]
    fn erf<I: Isa>(x: f64) -> f64 {
        let a = x.abs();
        let near = a.fma::<I>(f64::erf_poly::<I>(a * a), a);
        select(a < 1.0, near, 1.0 - erfc_tail::<I, f64>(a)).copysign(x)
    }

    #[inline(always)]
    fn gelu<I: Isa>(x: f64) -> f64 {
        // From here down to minus infinity it is 0.
        const FAR: f64 = 38.62;
        let u = -(x * FRAC_1_SQRT_2);
        // erfc(u) / 2, as `erfc` has it near 0.
        let near = 0.5 * x * (-u).fma::<I>(f64::erf_poly::<I>(u * u), 1.0 - u);
        // erfc(v) = e^(-v^2) p / v for v = |x| / sqrt(2): the |x| outside and the v below make sqrt(2). The
        // square is that of x itself, in two parts, so that the rounding of v is not magnified.
        let a = x.abs();
        let a = select(a > FAR, FAR, a);
        let v = a * FRAC_1_SQRT_2;
        let t = (v - f64::ERFC_CENTRE) / (v + f64::ERFC_CENTRE);
        let upper = a.upper();
        let low = -(0.5 * ((a - upper) * (a + upper)));
        let factor = FRAC_1_SQRT_2 * f64::erfc_poly::<I>(t);
        let tail = exp_sum::<I, f64>(-(0.5 * (upper * upper)), low, factor);
        let far = select(x < 0.0, -tail, x - tail);
        select(v < 1.0, near, far)
    }
}
