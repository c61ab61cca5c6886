//! Functions that Rust's standard library lacks, in `f64` and by other ways than those they are to judge.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// erf by its series, or from the complement.
pub fn erf(x: f64) -> f64 {
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
pub fn erfc(x: f64) -> f64 {
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

/// x / (1 + e^-x), in steps that do not underflow before the result does.
pub fn silu(x: f64) -> f64 {
    if x < 0.0 && x > -1000.0 {
        return (x * (0.5 * x).exp()) * (0.5 * x).exp() / (1.0 + x.exp());
    }
    if x < 0.0 { -0.0 } else { x / (1.0 + (-x).exp()) }
}

/// x erfc(-x / sqrt(2)) / 2; far from 0 by the continued fraction, with the square of x and not that of
/// its quotient.
pub fn gelu(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() || a < 1.0 {
        return 0.5 * x * erfc(-x * FRAC_1_SQRT_2);
    }
    if a > 50.0 {
        return if x < 0.0 { -0.0 } else { x };
    }
    let v = a * FRAC_1_SQRT_2;
    let terms = (40.0 + 400.0 / (v * v)) as u32;
    let mut tail = 0.0;
    for k in (1..=terms).rev() {
        tail = 0.5 * f64::from(k) / (v + tail);
    }
    let square = a * a;
    let lost = a.mul_add(a, -square);
    let root = (-0.25 * square).exp();
    let tail = 0.5 * a * root * (1.0 - 0.5 * lost) / ((v + tail) * PI.sqrt()) * root;
    if x < 0.0 { -tail } else { x - tail }
}

/// x / (1 + e^-t) for t = 2 sqrt(2/pi) (x + 0.044715 x^3).
pub fn gelu_tanh(x: f64) -> f64 {
    if x.abs() > 1000.0 {
        return if x < 0.0 { -0.0 } else { x };
    }
    let t = 2.0 * (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x);
    if x < 0.0 && t > -1000.0 {
        return (x * (0.5 * t).exp()) * (0.5 * t).exp() / (1.0 + t.exp());
    }
    if x < 0.0 { -0.0 } else { x / (1.0 + (-t).exp()) }
}

/// zeta(k) - 1 for k = 2, 3, ...
const ZETA: [f64; 34] = [
    0.6449340668482264,
    0.2020569031595943,
    0.08232323371113819,
    0.03692775514336993,
    0.01734306198444914,
    0.008349277381922827,
    0.00407735619794434,
    0.0020083928260822143,
    0.0009945751278180853,
    0.0004941886041194645,
    0.0002460865533080483,
    0.00012271334757848915,
    6.124813505870483e-05,
    3.058823630702049e-05,
    1.528225940865187e-05,
    7.637197637899763e-06,
    3.81729326499984e-06,
    1.908212716553939e-06,
    9.539620338727962e-07,
    4.769329867878064e-07,
    2.38450502727733e-07,
    1.1921992596531106e-07,
    5.960818905125948e-08,
    2.980350351465228e-08,
    1.4901554828365043e-08,
    7.45071178983543e-09,
    3.725334024788457e-09,
    1.862659723513049e-09,
    9.313274324196682e-10,
    4.656629065033784e-10,
    2.3283118336765053e-10,
    1.164155017270052e-10,
    5.820772087902701e-11,
    2.9103850444971e-11,
];

/// 1 - Euler's constant.
const REST: f64 = 0.42278433509846713;

/// lgamma(1 + d) for |d| <= 1/2: Legendre's series with its first terms summed, so that it ends soon.
fn lgamma_near_one(d: f64) -> f64 {
    let mut sum = 0.0;
    for (i, zeta) in ZETA.iter().enumerate().rev() {
        let k = (i + 2) as i32;
        sum += (-d).powi(k) * zeta / f64::from(k);
    }
    -d.ln_1p() + d * REST + sum
}

fn digamma_near_one(d: f64) -> f64 {
    let mut sum = 0.0;
    for (i, zeta) in ZETA.iter().enumerate().rev() {
        sum -= (-d).powi((i + 1) as i32) * zeta;
    }
    -1.0 / (1.0 + d) + REST + sum
}

/// ln |gamma(x)|.
pub fn lgamma(x: f64) -> f64 {
    if x < 0.0 {
        let near = x - x.round();
        if near == 0.0 {
            return f64::INFINITY;
        }
        return (PI / (x * (PI * near).sin()).abs()).ln() - lgamma(-x);
    }
    match x {
        _ if x < 0.5 => lgamma_near_one(x) - x.ln(),
        _ if x <= 1.5 => lgamma_near_one(x - 1.0),
        _ if x <= 2.5 => (x - 2.0).ln_1p() + lgamma_near_one(x - 2.0),
        _ if x < 20.0 => {
            let steps = (x - 1.5) as u32;
            let product: f64 = (1..=steps).map(|j| x - f64::from(j)).product();
            product.ln() + lgamma(x - f64::from(steps))
        }
        _ if x == f64::INFINITY => x,
        _ => {
            let z = 1.0 / (x * x);
            let rest = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z / 1680.0))) / x;
            (x - 0.5) * (x.ln() - 1.0) - 0.5 + 0.5 * (2.0 * PI).ln() + rest
        }
    }
}

/// The slope of `lgamma`.
pub fn digamma(x: f64) -> f64 {
    if x < 0.0 {
        let near = x - x.round();
        if near == 0.0 || x == f64::NEG_INFINITY {
            return f64::NAN;
        }
        return digamma(-x) - 1.0 / x - PI / (PI * near).tan();
    }
    match x {
        _ if x < 0.5 => digamma_near_one(x) - 1.0 / x.abs(),
        _ if x <= 1.5 => digamma_near_one(x - 1.0),
        _ if x < 20.0 => {
            let steps = (x - 0.5) as u32;
            let sum: f64 = (1..=steps).map(|j| 1.0 / (x - f64::from(j))).sum();
            sum + digamma_near_one(x - f64::from(steps) - 1.0)
        }
        _ => {
            let z = 1.0 / (x * x);
            let rest = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z / 240.0)));
            x.ln() - 0.5 / x - rest
        }
    }
}

/// The slope of `digamma` of an order, above 0: the sum of powers, some thousand terms of it, and the integral of the rest.
pub fn polygamma(order: u32, x: f64) -> f64 {
    let s = order as i32 + 1;
    let factorial: f64 = (1..=order).map(f64::from).product();
    let terms = 4000;
    let a = x + f64::from(terms);
    let rest =
        a.powi(1 - s) / f64::from(s - 1) + 0.5 * a.powi(-s) + f64::from(s) / 12.0 * a.powi(-s - 1);
    // The small ones first.
    let sum = (0..terms).rev().fold(rest, |sum, k| sum + (x + f64::from(k)).powi(-s));
    if order % 2 == 1 { factorial * sum } else { -factorial * sum }
}
