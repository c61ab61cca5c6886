//! The Gaussian error linear unit by a hyperbolic tangent. The exact one is in `sigmoid`.

use super::exp::weighted;
use super::pow::{product, sum};
use super::real::{MathFloat, select};
use crate::simd::Isa;

/// What the hyperbolic tangent stands for.
pub trait Angle: MathFloat {
    /// 2 sqrt(2/pi) (a + 0.044715 a^3) as a sum of two numbers, for 0 <= a <= [`Angle::FAR`]: what is
    /// left of it far out is a power of it.
    fn angle<I: Isa>(a: Self) -> (Self, Self);
    /// Beyond this the result is x, or 0.
    const FAR: Self;
}

/// 2 sqrt(2/pi), and that times 0.044715; each with what it lacks.
const LINEAR: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);

const CUBIC: (f64, f64) = (0.07135481627260025, -6.175149918155315e-19);

impl Angle for f32 {
    const FAR: f32 = 11.5;
    #[inline(always)]
    fn angle<I: Isa>(a: f32) -> (f32, f32) {
        let a = f64::from(a);
        let angle = a * (CUBIC.0 * (a * a) + LINEAR.0);
        let high = angle as f32;
        (high, (angle - f64::from(high)) as f32)
    }
}

impl Angle for f64 {
    const FAR: f64 = 22.0;
    #[inline(always)]
    fn angle<I: Isa>(a: f64) -> (f64, f64) {
        let (square, square_low) = product::<I>(a, a);
        let (m, m_low) = product::<I>(CUBIC.0, square);
        let m_low = m_low + CUBIC.0 * square_low + CUBIC.1 * square;
        let more = m > LINEAR.0;
        let (s, s_low) = sum(select(more, m, LINEAR.0), select(more, LINEAR.0, m));
        let s_low = s_low + m_low + LINEAR.1;
        let (angle, low) = product::<I>(a, s);
        (angle, low + a * s_low)
    }
}

/// x / (1 + e^-t) for t = 2 sqrt(2/pi) (x + 0.044715 x^3).
#[inline(always)]
pub fn gelu_tanh<I: Isa, T: Angle>(x: T) -> T {
    let a = x.abs();
    let (angle, low) = T::angle::<I>(select(a > T::FAR, T::FAR, a));
    weighted::<I, T>(x, angle, low)
}
