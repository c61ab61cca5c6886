//! The kernel of `random_poisson`: small rates by counting how many uniform numbers it takes until their product is
//! small; large ones by Hormann's transformed rejection (1993).

use tonnage_simd::float::{exp, log};
use tonnage_simd::{Isa, SimdKernel, level};

use super::draw::Draw;
use super::each;
use crate::kernel::{KernelDef, no_scratch};

/// The kernel of [`RANDOM_POISSON`](tonnage_ops::random::poisson::RANDOM_POISSON).
pub static RANDOM_POISSON: KernelDef = KernelDef {
    run: |k| each::draw(k, poisson),
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};

fn poisson(rate: f64, draw: &mut Draw) -> f64 {
    if rate.is_nan() || rate < 0.0 || rate == f64::INFINITY {
        return f64::NAN;
    }
    level().run(Poisson { rate, draw })
}

/// A number of an ordinary rate.
struct Poisson<'a> {
    rate: f64,
    draw: &'a mut Draw,
}

impl SimdKernel for Poisson<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<I: Isa>(self) -> f64 {
        let Poisson { rate, draw } = self;
        if rate < 10.0 { few::<I>(rate, draw) } else { many::<I>(rate, draw) }
    }
}

#[inline(always)]
fn few<I: Isa>(rate: f64, draw: &mut Draw) -> f64 {
    let least = exp::<I, f64>(-rate);
    let (mut product, mut count) = (1.0, -1.0f64);
    while product > least {
        product *= draw.uniforms()[0];
        count += 1.0;
    }
    count.max(0.0)
}

#[inline(always)]
fn many<I: Isa>(rate: f64, draw: &mut Draw) -> f64 {
    let ln = log::<I, f64>;
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse = 1.1239 + 1.1328 / (b - 3.4);
    let squeeze = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let [u, v] = draw.uniforms();
        let u = u - 0.5;
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= squeeze {
            return k;
        }
        if k < 0.0 || us < 0.013 && v > us {
            continue;
        }
        let weight = ln(v) + ln(inverse) - ln(a / (us * us) + b);
        if weight <= k * ln(rate) - rate - log_factorial::<I>(k) {
            return k;
        }
    }
}

/// ln k!, by Stirling's series above a table's reach.
#[inline(always)]
fn log_factorial<I: Isa>(k: f64) -> f64 {
    let ln = log::<I, f64>;
    if k < 10.0 {
        return (2..=k as u32).map(|i| ln(f64::from(i))).sum();
    }
    let x = k + 1.0;
    let z = 1.0 / (x * x);
    let rest = (1.0 / 12.0 - z * (1.0 / 360.0 - z / 1260.0)) / x;
    (x - 0.5) * ln(x) - x + 0.5 * ln(std::f64::consts::TAU) + rest
}
