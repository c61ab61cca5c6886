//! `random_gamma`: numbers of the gamma distribution, one for each shape parameter.
//!
//! By Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): a normal number, cubed, is taken
//! more than nineteen times of twenty. A parameter of 0 gives 0, infinity gives infinity, one below 0 gives NaN.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, no_scratch};

use super::draw::Draw;
use super::each;

/// `(shape [..], key u32 [2]) -> [..]`
pub static RANDOM_GAMMA: OpDef = OpDef {
    name: "random_gamma",
    doc: "Numbers of the gamma distribution with a rate of 1, one for each shape parameter.",
    infer: each::infer,
    axes: each::axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: each::weight,
    grad: Grad::Stop("a number that was drawn has no gradient along its parameter here"),
    jvp: Jvp::Stop("a number that was drawn has no gradient along its parameter here"),
    fails: Fails::Never,
    lower: Lower::Slices(|k| each::draw(k, gamma)),
    samples: || each::samples(50.0),
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
