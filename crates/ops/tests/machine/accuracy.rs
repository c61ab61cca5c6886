//! How far the functions of one float are from exact, over every `f32` there is.
//!
//! The reference is the platform's `f64` function; for `erf` and `erfc`, which Rust's standard
//! library lacks, a series and a continued fraction in `f64`; for inverse hyperbolic functions, whose
//! standard ones overflow or lose digits far out, a longer formula there. The normal tests take a strided
//! subset through the same code.

use std::f64::consts::LN_2;

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::DType;
use tonnage_ops::simd::Level;
use tonnage_ops::simd::prim::{Binary, Unary};

/// A function with its reference and the error that its documentation states.
#[derive(Debug, Clone, Copy)]
struct Subject {
    /// The function.
    prim: Unary,
    /// The same in `f64`.
    exact: fn(f64) -> f64,
    /// The largest error for `f32`, in ULP.
    stated_f32: f64,
    /// The largest error for `f64`, in ULP; over samples, and libm's own error included.
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
    ($($prim:ident, $f32:literal, $f64:literal, $exact:expr;)*) => {
        /// Every unary function that is not exact by construction.
        const SUBJECTS: &[Subject] = &[$(Subject {
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
    Asinh, 3.0, 4.0, |x| if x.abs() > 1e150 { (x.abs().ln() + LN_2).copysign(x) } else { x.asinh() };
    Acosh, 3.0, 4.0, |x| if x > 1e150 { x.ln() + LN_2 } else { 2.0 * (0.5 * (x - 1.0)).sqrt().asinh() };
    Atanh, 3.0, 4.0, |x| (0.5 * (x.abs().ln_1p() - (-x.abs()).ln_1p())).copysign(x);
    Sigmoid, 3.0, 3.0, |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    Softplus, 3.0, 3.0, |x| x.max(0.0) + (-x.abs()).exp().ln_1p();
    Erf, 3.0, 4.0, erf;
    Erfc, 3.0, 8.0, erfc;
}

/// erf by its series, or from the complement.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > 0.5 {
        return (1.0 - erfc(a)).copysign(x);
    }
    let (mut power, mut sum) = (x, 0.0);
    // Twelve terms do for 1/2; the first one last, so that the small ones count.
    let mut terms = [0.0; 13];
    for (n, term) in terms.iter_mut().enumerate() {
        *term = power / (2 * n + 1) as f64;
        power *= -x * x / (n + 1) as f64;
    }
    for term in terms.iter().rev() {
        sum += term;
    }
    (sum * std::f64::consts::FRAC_2_SQRT_PI).copysign(x)
}

/// erfc by Laplace's continued fraction, or from erf where that loses nothing.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x.is_nan() || x <= 0.5 {
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

#[test]
fn soak_every_f32_function_keeps_its_stated_error() {
    // A stride of all inputs; in a soak every single one.
    let all = std::env::var_os("TONNAGE_SOAK").is_some();
    for worst in if all { all_f32() } else { sweep_f32(0, u32::MAX, 40_009) } {
        let Worst { subject, level, ulp, at } = worst;
        assert!(ulp <= subject.stated_f32, "{:?} {level}: {ulp} ulp at {at:e}", subject.prim);
    }
}

fn ulp_f64(got: f64, exact: f64) -> f64 {
    if got.to_bits() == exact.to_bits() || (got.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    if got.is_nan() || exact.is_nan() || (got == 0.0 && exact == 0.0) {
        return f64::INFINITY;
    }
    // Along the line of all numbers, on which neighbours differ by one.
    let place = |x: f64| (x.abs().to_bits() as i64) * if x.is_sign_negative() { -1 } else { 1 };
    (place(got) - place(exact)).abs() as f64
}

/// All exponents, then ranges where functions have their bends.
fn samples_f64() -> Vec<f64> {
    let mut out = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0];
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 29
    };
    out.extend((0..20_000).map(|_| f64::from_bits(next())));
    for range in [1e-9, 0.01, 0.7, 1.5, 8.0, 30.0, 800.0, 1e6] {
        out.extend((0..4000).map(|_| ((next() >> 11) as f64 / 2f64.powi(52) - 1.0) * range));
    }
    out
}

#[test]
fn every_f64_function_keeps_its_stated_error_on_samples() {
    let inputs = samples_f64();
    let mut out = vec![0f64; inputs.len()];
    let mut bad = Vec::new();
    for subject in SUBJECTS {
        let function = subject.prim.function(DType::F64).expect("every subject has one");
        for &level in Level::available() {
            function(level, cast_slice_mut(&mut out), cast_slice(&inputs));
            let worst = out
                .iter()
                .zip(&inputs)
                .map(|(&got, &x)| (ulp_f64(got, (subject.exact)(x)), x))
                .fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
            if worst.0 > subject.stated_f64 {
                bad.push((subject.prim, level, worst));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

/// Edges of every kind, and ordinary numbers.
fn pairs() -> (Vec<f64>, Vec<f64>) {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e-310,
        1e300,
        -1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1.5,
        7.0,
        -7.0,
        1e15,
        9007199254740993.0,
    ];
    let mut pairs: Vec<(f64, f64)> =
        edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
    let x = samples_f64();
    pairs.extend(x.iter().zip(x.iter().rev()).map(|(&a, &b)| (a.abs(), b)));
    // Bases near 1 with exponents that make the power large: where a logarithm in one float
    // would lose ten bits.
    pairs.extend(
        (1..2000).map(|i| (1.0 + f64::from(i) * 2e-4, 700.0 / (f64::from(i) * 2e-4).ln_1p())),
    );
    pairs.into_iter().unzip()
}

#[test]
fn functions_of_two_floats_have_libms_special_cases_and_keep_their_error() {
    let (a, b) = pairs();
    type Exact = fn(f64, f64) -> f64;
    let subjects: [(Binary, Exact, f64, f64); 3] = [
        (Binary::Pow, f64::powf, 1.0, 2.0),
        (Binary::Atan2, f64::atan2, 3.0, 4.0),
        (Binary::Hypot, f64::hypot, 2.0, 3.0),
    ];
    let single = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let (a32, b32) = (single(&a), single(&b));
    for (prim, exact, stated_f32, stated_f64) in subjects {
        for &level in Level::available() {
            let mut out = vec![0f64; a.len()];
            let function = prim.function(DType::F64).expect("there is one");
            function(level, cast_slice_mut(&mut out), cast_slice(&a), cast_slice(&b));
            for i in 0..a.len() {
                let ulp = ulp_f64(out[i], exact(a[i], b[i]));
                assert!(
                    ulp <= stated_f64,
                    "{prim:?} {level} {:e} {:e}: {:e}, {ulp} ulp",
                    a[i],
                    b[i],
                    out[i]
                );
            }
            let mut out = vec![0f32; a.len()];
            let function = prim.function(DType::F32).expect("there is one");
            function(level, cast_slice_mut(&mut out), cast_slice(&a32), cast_slice(&b32));
            for i in 0..a.len() {
                let (a, b) = (f64::from(a32[i]), f64::from(b32[i]));
                let ulp = ulp_f32(out[i], exact(a, b));
                assert!(ulp <= stated_f32, "{prim:?} {level} {a:e} {b:e}: {:e}, {ulp} ulp", out[i]);
            }
        }
    }
}

/// Values computed with forty digits.
#[test]
fn erf_and_erfc_of_f64_agree_with_exact_values() {
    let table: [(f64, f64, f64, f64); 24] = [
        (0.001, 0.0011283787909692365, 0.9988716212090307, 1.0011283787909693),
        (0.1, 0.1124629160182849, 0.887537083981715, 1.1124629160182848),
        (0.25, 0.27632639016823696, 0.7236736098317631, 1.276326390168237),
        (0.49, 0.511668261188523, 0.4883317388114769, 1.511668261188523),
        (0.5, 0.5204998778130465, 0.4795001221869535, 1.5204998778130465),
        (0.51, 0.5292436198411704, 0.4707563801588296, 1.5292436198411705),
        (0.7, 0.6778011938374184, 0.32219880616258156, 1.6778011938374184),
        (0.9, 0.7969082124228322, 0.20309178757716786, 1.7969082124228322),
        (1.0, 0.8427007929497149, 0.15729920705028513, 1.8427007929497148),
        (1.2, 0.9103139782296353, 0.08968602177036464, 1.9103139782296354),
        (1.5, 0.9661051464753108, 0.033894853524689274, 1.9661051464753108),
        (1.541457, 0.9707387871198933, 0.029261212880106708, 1.9707387871198934),
        (1.9, 0.9927904292352575, 0.0072095707647425325, 1.9927904292352574),
        (2.396, 0.9992971261706295, 0.00070287382937053, 1.9992971261706294),
        (2.9, 0.9999589021219005, 4.109787809945886e-05, 1.9999589021219006),
        (3.5, 0.9999992569016276, 7.430983723414128e-07, 1.9999992569016276),
        (4.4, 0.999999999510829, 4.891710270605872e-10, 1.999999999510829),
        (5.2, 0.9999999999998075, 1.9249061099972322e-13, 1.9999999999998075),
        (5.9, 0.9999999999999999, 7.190409783550478e-17, 2.0),
        (7.7, 1.0, 1.2942740067717136e-27, 2.0),
        (10.0, 1.0, 2.088487583762545e-45, 2.0),
        (15.0, 1.0, 7.212994172451207e-100, 2.0),
        (20.0, 1.0, 5.395865611607901e-176, 2.0),
        (26.0, 1.0, 5.663192408856143e-296, 2.0),
    ];
    for &level in Level::available() {
        for (x, erf, erfc, erfc_negative) in table {
            for (prim, x, exact) in [
                (Unary::Erf, x, erf),
                (Unary::Erf, -x, -erf),
                (Unary::Erfc, x, erfc),
                (Unary::Erfc, -x, erfc_negative),
            ] {
                let mut out = [0f64];
                let function = prim.function(DType::F64).expect("there is one");
                function(level, cast_slice_mut(&mut out), cast_slice(&[x]));
                let ulp = ulp_f64(out[0], exact);
                assert!(ulp <= 4.0, "{prim:?} {level} {x}: {ulp} ulp");
            }
        }
    }
}
