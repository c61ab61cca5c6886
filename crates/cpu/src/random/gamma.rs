//! The kernel of `random_gamma`, by Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): a
//! normal number, cubed, is taken more than nineteen times of twenty.

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
    if shape < 1.0 {
        // One more, and made smaller by a power of a uniform number.
        let more = gamma(shape + 1.0, draw);
        return more * draw.uniforms()[0].powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = draw.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 {
            let u = draw.uniforms()[0];
            if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}
