//! The Gaussian error linear unit by a hyperbolic tangent: x / (1 + e^-t) for t = 2 sqrt(2/pi) (x + 0.044715 x^3). The exact one is in
//! `sigmoid`.
//!
//! `f32` has a short formula, as the functions there have.
//!
//! Decision: `docs/decisions/exact-formulas-on-gpus.md`.

use super::exp::weighted;
use super::pow::{product, sum};
use super::real::{MathFloat, select};
use super::sigmoid::Rising;
use crate::Isa;

/// What the two floats compute each in its way.
pub trait ByTangent: MathFloat {
    /// x / (1 + e^-t); of `f64` with relative precision also far below 0, of `f32` to 2^-24 of x there.
    fn gelu_tanh<I: Isa>(x: Self) -> Self;
}

/// 2 sqrt(2/pi), and that times 0.044715; each with what it lacks.
const LINEAR: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);

const CUBIC: (f64, f64) = (0.07135481627260025, -6.175149918155315e-19);

impl ByTangent for f32 {
    #[inline(always)]
    fn gelu_tanh<I: Isa>(x: f32) -> f32 {
        // From here on the share of the lower level is 0.
        const FAR: f32 = 10.1;
        let a = x.abs();
        let a = select(a > FAR, FAR, a);
        let t = a * (a * a).fma::<I>(CUBIC.0 as f32, LINEAR.0 as f32);
        // x above 0, and -0 below.
        let above = f32::from_bits(x.to_bits().min((-0f32).to_bits()));
        (-a).fma::<I>(f32::sigmoid::<I>(-t), above)
    }
}

impl ByTangent for f64 {
    #[inline(always)]
    fn gelu_tanh<I: Isa>(x: f64) -> f64 {
        // Beyond this the result is x, or 0.
        const FAR: f64 = 22.0;
        let a = x.abs();
        let (angle, low) = angle::<I>(select(a > FAR, FAR, a));
        weighted::<I, f64>(x, angle, low)
    }
}

/// t for x = `a` from 0 on, as a sum of two numbers: what is left of it far out is a power of it.
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
