//! [`MathFloat`] for the two floats: their constants and bit layouts.

use super::real::MathFloat;
use crate::Isa;

macro_rules! layout {
    ($T:ident, $Bits:ident, mantissa: $mantissa:literal, sqrt_half: $sqrt_half:literal) => {
        const ZERO: $T = 0.0;
        const HALF: $T = 0.5;
        const ONE: $T = 1.0;
        const TWO: $T = 2.0;
        const INFINITY: $T = $T::INFINITY;
        const NAN: $T = $T::NAN;
        const LN_2: $T = std::$T::consts::LN_2;
        const LOG2_E: $T = std::$T::consts::LOG2_E;
        const FRAC_PI_2: $T = std::$T::consts::FRAC_PI_2;
        const FRAC_PI_4: $T = std::$T::consts::FRAC_PI_4;
        const PI: $T = std::$T::consts::PI;
        const TAN_PI_8: $T = std::$T::consts::SQRT_2 - 1.0;
        const TANH_SPLIT: $T = 0.55;
        const TINY: $T = $T::MIN_POSITIVE;
        const INTEGRAL: $T = ((1 as $Bits) << $mantissa) as $T;
        const MAGIC: $T = ((3 as $Bits) << ($mantissa - 1)) as $T;
        const SHIFTER: $T = Self::MAGIC + ((1 << ($Bits::BITS - 1 - $mantissa)) - 2) as $T;
        const SMALL: $T = 0.25 / Self::INTEGRAL;
        const LIFT: ($T, $T) = (((1 as $Bits) << ($mantissa + 2)) as $T, ($mantissa + 2) as $T);

        #[inline(always)]
        fn fma<I: Isa>(self, b: $T, c: $T) -> $T {
            if I::FMA { self.mul_add(b, c) } else { self * b + c }
        }
        #[inline(always)]
        fn abs(self) -> $T {
            self.abs()
        }
        #[inline(always)]
        fn sqrt(self) -> $T {
            self.sqrt()
        }
        #[inline(always)]
        fn copysign(self, sign: $T) -> $T {
            self.copysign(sign)
        }
        #[inline(always)]
        fn round_even_at_once(self) -> $T {
            self.round_ties_even()
        }
        #[inline(always)]
        fn floor_at_once(self) -> $T {
            self.floor()
        }
        #[inline(always)]
        fn ceil_at_once(self) -> $T {
            self.ceil()
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            self != self
        }
        #[inline(always)]
        fn upper(self) -> $T {
            $T::from_bits(self.to_bits() & !(((1 as $Bits) << ($mantissa / 2 + 1)) - 1))
        }
        #[inline(always)]
        fn pow2(shifted: $T) -> ($T, $T) {
            // The low bits are n + 2 BIAS: the exponent fields of the two factors add up to that.
            let bits = shifted.to_bits();
            let low = bits << ($mantissa - 1) & ((!0 as $Bits) << $mantissa);
            ($T::from_bits(low), $T::from_bits((bits << $mantissa).wrapping_sub(low)))
        }
        #[inline(always)]
        fn half_pow2(shifted: $T) -> $T {
            const BIAS: $Bits = (1 << ($Bits::BITS - 2 - $mantissa)) - 1;
            $T::from_bits(shifted.to_bits().wrapping_sub(BIAS + 1) << $mantissa)
        }
        #[inline(always)]
        fn split(self) -> ($T, $T) {
            const BIAS: $Bits = (1 << ($Bits::BITS - 2 - $mantissa)) - 1;
            const ONE: $Bits = BIAS << $mantissa;
            // Moving the boundary from 1 to sqrt(1/2) makes the exponent that of the nearest power.
            let bits = self.to_bits().wrapping_add(ONE - $sqrt_half);
            let exponent = (bits >> $mantissa).wrapping_sub(BIAS);
            let mantissa = (bits & ((1 << $mantissa) - 1)).wrapping_add($sqrt_half);
            // An integer to a float without a conversion, which 64 bits lack below AVX-512.
            let e = $T::from_bits(exponent.wrapping_add(Self::MAGIC.to_bits())) - Self::MAGIC;
            ($T::from_bits(mantissa), e)
        }
        #[inline(always)]
        fn sin_slow(self) -> $T {
            f64::from(self).sin() as $T
        }
        #[inline(always)]
        fn cos_slow(self) -> $T {
            f64::from(self).cos() as $T
        }
        #[inline(always)]
        fn tan_slow(self) -> $T {
            f64::from(self).tan() as $T
        }
    };
}

/// pi/2 in parts of 33 bits and the rest: `n` times a part is exact for n below 2^20.
const PI_2_A: f64 = 1.5707963267341256;

const PI_2_B: f64 = 6.077100506303966e-11;

const PI_2_C: f64 = 2.0222662487959506e-21;

impl MathFloat for f32 {
    layout!(f32, u32, mantissa: 23, sqrt_half: 0x3f35_04f3);

    const LN_2_HIGH: f32 = 0.69314575;
    const LN_2_LOW: f32 = 1.4286068e-6;
    const FRAC_PI_2_LOW: f32 = -4.371139e-8;
    const BIG: f32 = 16_777_216.0;
    const EXP_HIGH: f32 = 90.0;
    const EXP_LOW: f32 = -104.0;
    const EXPM1_HIGH: f32 = 89.0;
    const EXPM1_LOW: f32 = -20.0;
    const ERFC_ZERO: f32 = 10.1;
    const PRODUCT_FAR: f32 = 110.0;
    const TANH_ONE: f32 = 9.5;

    const TRIG_FAST: f32 = 1_000_000.0;
    #[inline(always)]
    fn quadrant(self) -> (f32, f32, u32) {
        // In f64, where two parts of pi/2 do for every f32 up to the limit, with no fused
        // multiply-add: f32 alone would need four parts and reach 2^16.
        let x = f64::from(self);
        let shifted = x * std::f64::consts::FRAC_2_PI + f64::MAGIC;
        let n = shifted - f64::MAGIC;
        let r = (x - n * PI_2_A) - n * (PI_2_B + PI_2_C);
        let high = r as f32;
        (high, (r - f64::from(high)) as f32, shifted.to_bits() as u32)
    }
}

impl MathFloat for f64 {
    layout!(f64, u64, mantissa: 52, sqrt_half: 0x3fe6_a09e_667f_3bcd);

    const LN_2_HIGH: f64 = 0.6931471803691238;
    const LN_2_LOW: f64 = 1.9082149292705877e-10;
    const FRAC_PI_2_LOW: f64 = 6.123233995736766e-17;
    const BIG: f64 = 9_007_199_254_740_992.0;
    const EXP_HIGH: f64 = 711.0;
    const EXP_LOW: f64 = -746.0;
    const EXPM1_HIGH: f64 = 710.0;
    const EXPM1_LOW: f64 = -40.0;
    const ERFC_ZERO: f64 = 27.3;
    const PRODUCT_FAR: f64 = 755.0;
    const TANH_ONE: f64 = 20.0;

    const TRIG_FAST: f64 = 1_000_000.0;
    #[inline(always)]
    fn quadrant(self) -> (f64, f64, u32) {
        let shifted = self * std::f64::consts::FRAC_2_PI + f64::MAGIC;
        let n = shifted - f64::MAGIC;
        // The first difference is exact, the others leave a little.
        let (a, b, c) = (self - n * PI_2_A, n * PI_2_B, n * PI_2_C);
        let ab = a - b;
        let r = ab - c;
        (r, ((a - ab) - b) + ((ab - r) - c), shifted.to_bits() as u32)
    }
}
