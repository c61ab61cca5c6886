//! How far the functions of one float are from exact, over every `f32` there is.
//!
//! The reference is the platform's `f64` function; for `erf` and `erfc`, which Rust's standard
//! library lacks, a series and a continued fraction in `f64`. The normal tests take a strided
//! subset through the same code.

use tonnage_core::DType;

use super::level::Level;
use super::prim::Unary;

/// A function with its reference and the error that its documentation states.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The function.
    pub prim: Unary,
    /// The same in `f64`.
    pub exact: fn(f64) -> f64,
    /// The largest error for `f32`, in ULP.
    pub stated_f32: f64,
    /// The largest error for `f64`, in ULP; over samples, and libm's own error included.
    pub stated_f64: f64,
}

/// The worst error of a function at a level.
#[derive(Debug, Clone, Copy)]
pub struct Worst {
    /// The function.
    pub subject: Subject,
    /// The level.
    pub level: Level,
    /// In units in the last place of the exact result; infinite where NaN, a sign of zero or an
    /// infinity is not what libm gives.
    pub ulp: f64,
    /// Where.
    pub at: f32,
}

macro_rules! subjects {
    ($($prim:ident, $f32:literal, $f64:literal, $exact:expr;)*) => {
        /// Every unary function that is not exact by construction.
        pub const SUBJECTS: &[Subject] = &[$(Subject {
            prim: Unary::$prim, exact: $exact, stated_f32: $f32, stated_f64: $f64,
        },)*];
    };
}

subjects! {
    Floor, 0.5, 0.5, f64::floor;
    Ceil, 0.5, 0.5, f64::ceil;
    Round, 0.5, 0.5, f64::round_ties_even;
    Sqrt, 0.51, 0.51, f64::sqrt;
    Rsqrt, 1.5, 1.5, |x| 1.0 / x.sqrt();
    Exp, 1.5, 2.0, f64::exp;
    Expm1, 3.0, 3.0, f64::exp_m1;
    Log, 1.5, 2.0, f64::ln;
    Log1p, 3.0, 3.0, f64::ln_1p;
    Sin, 1.5, 2.0, f64::sin;
    Cos, 1.5, 2.0, f64::cos;
    Tan, 3.0, 3.0, f64::tan;
    Asin, 3.0, 3.0, f64::asin;
    Acos, 3.0, 3.0, f64::acos;
    Atan, 3.0, 3.0, f64::atan;
    Sinh, 3.0, 4.0, f64::sinh;
    Cosh, 3.0, 4.0, f64::cosh;
    Tanh, 1.5, 3.0, f64::tanh;
    Asinh, 3.0, 4.0, f64::asinh;
    Acosh, 3.0, 4.0, f64::acosh;
    Atanh, 3.0, 4.0, f64::atanh;
    Sigmoid, 3.0, 3.0, |x| 1.0 / (1.0 + (-x).exp());
    Softplus, 3.0, 3.0, |x| x.max(0.0) + (-x.abs()).exp().ln_1p() + 0.0 * x;
    Erf, 3.0, 4.0, erf;
    Erfc, 3.0, 8.0, erfc;
}

/// erf by its series of positive terms, or from the complement.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > 2.5 {
        return (1.0 - erfc(a)).copysign(x);
    }
    let (mut term, mut sum) = (x, x);
    let mut n = 0.0;
    while term.abs() > sum.abs() * 1e-18 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
}

/// erfc by Laplace's continued fraction, or from erf where that loses nothing.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x.is_nan() || x < 0.5 {
        return 1.0 - erf(x);
    }
    if x > 30.0 {
        return 0.0;
    }
    // More terms where it converges slowly; from the last inwards.
    let terms = (40.0 + 400.0 / (x * x)) as u32;
    let mut tail = 0.0;
    for k in (1..=terms).rev() {
        tail = 0.5 * f64::from(k) / (x + tail);
    }
    // x^2 with what its rounding lost, as in the functions themselves but with a fused step.
    let square = x * x;
    let lost = x.mul_add(x, -square);
    (-square).exp() * (1.0 - lost) / ((x + tail) * std::f64::consts::PI.sqrt())
}

/// The distance of an `f32` from the exact value, in units of the exact value's last place.
pub fn ulp_f32(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if exact.is_nan() || got.is_nan() {
        return if exact.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if nearest == got {
        let signs_differ = exact == 0.0 && exact.is_sign_negative() != got.is_sign_negative();
        return match () {
            () if signs_differ => f64::INFINITY,
            () if got.is_infinite() => 0.0,
            () => (f64::from(got) - exact).abs() / unit(exact),
        };
    }
    // An infinity stands for the number that would come after the largest.
    let value = |x: f64| if x.abs() >= 2f64.powi(128) { 2f64.powi(128).copysign(x) } else { x };
    (value(f64::from(got)) - value(exact)).abs() / unit(exact)
}

fn unit(exact: f64) -> f64 {
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.clamp(-126, 127) - 23)
}

/// The worst error of every function at every level, over bit patterns `first`, `first + stride`, ...
pub fn sweep_f32(first: u32, last: u32, stride: u32) -> Vec<Worst> {
    let mut worst = Vec::new();
    let mut inputs = Vec::new();
    let mut exact = Vec::new();
    for subject in SUBJECTS {
        let Some(function) = subject.prim.function(DType::F32) else { continue };
        let levels = Level::available();
        let base = worst.len();
        worst.extend(levels.iter().map(|&level| Worst {
            subject: *subject,
            level,
            ulp: 0.0,
            at: 0.0,
        }));
        let mut next = Some(first);
        while let Some(start) = next {
            inputs.clear();
            while let Some(bits) = next
                && inputs.len() < 4096
            {
                inputs.push(f32::from_bits(bits));
                next = bits.checked_add(stride).filter(|&bits| bits <= last);
            }
            exact.clear();
            exact.extend(inputs.iter().map(|&x| (subject.exact)(f64::from(x))));
            let mut out = vec![0f32; inputs.len()];
            for (i, &level) in levels.iter().enumerate() {
                function(level, bytemuck::cast_slice_mut(&mut out), bytemuck::cast_slice(&inputs));
                for ((&got, &exact), &at) in out.iter().zip(&exact).zip(&inputs) {
                    let ulp = ulp_f32(got, exact);
                    if ulp > worst[base + i].ulp {
                        worst[base + i] = Worst { ulp, at, ..worst[base + i] };
                    }
                }
            }
            debug_assert!(next.is_none_or(|n| n > start));
        }
    }
    worst
}

/// Every `f32`, on all threads: some minutes for each function.
pub fn all_f32() -> Vec<Worst> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let mut parts = std::thread::scope(|scope| {
        let handles: Vec<_> =
            (0..threads).map(|i| scope.spawn(move || sweep_f32(i, u32::MAX, threads))).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect::<Vec<_>>()
    });
    let mut all = parts.pop().unwrap_or_default();
    for part in parts {
        for (worst, other) in all.iter_mut().zip(part) {
            if other.ulp > worst.ulp {
                *worst = other;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f32_function_keeps_its_stated_error_on_a_stride_of_all_inputs() {
        for worst in sweep_f32(0, u32::MAX, 40_009) {
            let Worst { subject, level, ulp, at } = worst;
            assert!(ulp <= subject.stated_f32, "{:?} {level}: {ulp} ulp at {at:e}", subject.prim);
        }
    }
}
