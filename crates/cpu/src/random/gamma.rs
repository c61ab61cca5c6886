//! The kernel of `random_gamma`, by Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): a
//! normal number, cubed, is taken more than nineteen times of twenty.

use tonnage_simd::float::log;
use tonnage_simd::float::pow::Pow;
use tonnage_simd::{Isa, SimdKernel, level};

use super::draw::Draw;
use super::each;
use crate::kernel::{KernelDef, no_scratch};

/// The kernel of [`RANDOM_GAMMA`](tonnage_ops::random::gamma::RANDOM_GAMMA).
pub static RANDOM_GAMMA: KernelDef = KernelDef {
    run: |k| each::draw(k, gamma),
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};

fn gamma(shape: f64, draw: &mut Draw) -> f64 {
    if shape.is_nan() || shape < 0.0 {
        return f64::NAN;
    }
    if shape == 0.0 || shape == f64::INFINITY {
        return shape;
    }
    level().run(Gamma { shape, draw })
}

/// A number of an ordinary shape.
struct Gamma<'a> {
    shape: f64,
    draw: &'a mut Draw,
}

impl SimdKernel for Gamma<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<I: Isa>(self) -> f64 {
        let Gamma { shape, draw } = self;
        // Of less than one: one more, and made smaller by a power of a uniform number.
        let small = shape < 1.0;
        let d = if small { shape + 1.0 } else { shape } - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = draw.normal::<I>();
            let t = 1.0 + c * x;
            let v = t * t * t;
            if v > 0.0 {
                let u = draw.uniforms()[0];
                if log::<I, f64>(u) < 0.5 * x * x + d - d * v + d * log::<I, f64>(v) {
                    if !small {
                        return d * v;
                    }
                    return d * v * f64::pow::<I>(draw.uniforms()[0], 1.0 / shape);
                }
            }
        }
    }
}
