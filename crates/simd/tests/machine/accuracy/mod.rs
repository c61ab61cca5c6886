//! How far the functions of one float are from exact, over every `f32` there is.
//!
//! The reference is the platform's `f64` function; for those that Rust's standard library lacks (`erf`,
//! `gelu`, `lgamma` and the like) a series or a continued fraction in `f64` (`exact`); for inverse
//! hyperbolic functions, whose standard ones overflow or lose digits far out, a longer formula there.
//! The normal tests take a strided subset through the same code.

#[path = "../../exact/mod.rs"]
mod exact;
mod stated;

use std::f64::consts::LN_2;

use tonnage_core::DType;

use tonnage_simd::Level;
use tonnage_simd::prim::Unary;

use exact::{digamma, erf, erfc, gelu, gelu_tanh, lgamma, polygamma, silu};

/// A function with its reference and the error that its documentation states.
#[derive(Debug, Clone, Copy)]
struct Subject {
    /// The function.
    prim: Unary,
    /// The same in `f64`.
    exact: fn(f64) -> f64,
    /// The largest error for `f32`, in ULP.
    stated_f32: f64,
    /// An error for `f32` that is let pass whatever it is in ULP, at a number.
    passes_f32: fn(f64) -> f64,
    /// The largest error for `f64`, in ULP; over samples, and the reference's own error included. Infinite
    /// where the reference has no digits near a zero: tables of exact values stand for it.
    stated_f64: f64,
}

/// The worst error of a function at a level.
#[derive(Debug, Clone, Copy)]
struct Worst {
    /// The function.
    subject: Subject,
    /// The level.
    level: Level,
    /// In units in the last place of the exact result; infinite where NaN, a sign of zero or an
    /// infinity is not what libm gives.
    ulp: f64,
    /// Where.
    at: f32,
}

macro_rules! subjects {
    ($($prim:ident, $f32:literal $(or $passes:expr)?, $f64:expr, $exact:expr;)*) => {
        /// Every unary function that is not exact by construction.
        const SUBJECTS: &[Subject] = &[$(Subject {
            prim: Unary::$prim, exact: $exact, stated_f32: $f32, passes_f32: subjects!(@ $($passes)?), stated_f64: $f64,
        },)*];
    };
    (@) => { |_| 0.0 };
    (@ $passes:expr) => { $passes };
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
    Asinh, 3.0, 4.0, |x| if x.abs() > 1e150 { (x.abs().ln() + LN_2).copysign(x) } else { x.asinh() };
    Acosh, 3.0, 4.0, |x| if x > 1e150 { x.ln() + LN_2 } else { 2.0 * (0.5 * (x - 1.0)).sqrt().asinh() };
    Atanh, 3.0, 4.0, |x| (0.5 * (x.abs().ln_1p() - (-x.abs()).ln_1p())).copysign(x);
    // 0 where the result is no normal number.
    Sigmoid, 3.0 or |_| f64::from(f32::MIN_POSITIVE), 3.0, |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    Softplus, 3.0, 3.0, |x| x.max(0.0) + (-x.abs()).exp().ln_1p();
    Silu, 3.0, 4.0, silu;
    // Below 0 what is left of x is known to 2^-24 of x, a fourth of what erf rounded to f32 leaves of it.
    Gelu, 4.5 or |x| x.abs() * 2f64.powi(-24), 8.0, gelu;
    // The reference's angle is off by its rounding, which is magnified by as much as it is large.
    GeluTanh, 3.0 or |x| x.abs() * 2f64.powi(-24), 2000.0, gelu_tanh;
    Lgamma, 3.0, f64::INFINITY, lgamma;
    Digamma, 3.0, f64::INFINITY, digamma;
    Erf, 3.0, 4.0, erf;
    Erfc, 3.0, 8.0, erfc;
}

/// The distance of an `f32` from the exact value, in units of the exact value's last place.
fn ulp_f32(got: f32, exact: f64) -> f64 {
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
fn sweep_f32(first: u32, last: u32, stride: u32) -> Vec<Worst> {
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
                    let passes = (subject.passes_f32)(f64::from(at));
                    let ulp = if exact != 0.0 && (f64::from(got) - exact).abs() <= passes {
                        0.0
                    } else {
                        ulp_f32(got, exact)
                    };
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
fn all_f32() -> Vec<Worst> {
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
