//! Elementwise functions of one number.

use tonnage_core::{Attrs, DType};

use super::Asked;
use super::math::{map, one};
use crate::exact;
use crate::plain::Answer;

pub fn abs(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::abs)
}

pub fn floor(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::floor)
}

pub fn ceil(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::ceil)
}

pub fn round(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::round_ties_even)
}

pub fn sqrt(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::sqrt)
}

pub fn rsqrt(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| 1.0 / x.sqrt())
}

pub fn reciprocal(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| 1.0 / x)
}

pub fn expm1(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::exp_m1)
}

pub fn log1p(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::ln_1p)
}

pub fn sin(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::sin)
}

pub fn cos(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::cos)
}

pub fn tan(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::tan)
}

pub fn asin(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::asin)
}

pub fn acos(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::acos)
}

pub fn atan(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::atan)
}

pub fn sinh(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::sinh)
}

pub fn cosh(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::cosh)
}

pub fn asinh(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::asinh)
}

pub fn acosh(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::acosh)
}

pub fn atanh(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::atanh)
}

pub fn sigmoid(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| 1.0 / (1.0 + (-x).exp()))
}

pub fn softplus(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| x.max(0.0) + (-x.abs()).exp().ln_1p())
}

pub fn softsign(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| x / (1.0 + x.abs()))
}

pub fn silu(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| x / (1.0 + (-x).exp()))
}

pub fn gelu(asked: &Asked) -> Vec<Answer> {
    // Below 0 what is left of x is known to a part of x.
    let scale: Vec<f64> = asked.inputs[0].values.iter().map(|x| x.abs()).collect();
    let answers = one(asked, exact::gelu).into_iter();
    answers.map(|answer| Answer { scale: scale.clone(), ..answer }).collect()
}

pub fn gelu_tanh(asked: &Asked) -> Vec<Answer> {
    one(asked, exact::gelu_tanh)
}

pub fn erf(asked: &Asked) -> Vec<Answer> {
    one(asked, exact::erf)
}

pub fn erfc(asked: &Asked) -> Vec<Answer> {
    one(asked, exact::erfc)
}

pub fn lgamma(asked: &Asked) -> Vec<Answer> {
    one(asked, exact::lgamma)
}

pub fn digamma(asked: &Asked) -> Vec<Answer> {
    one(asked, exact::digamma)
}

pub fn polygamma(asked: &Asked) -> Vec<Answer> {
    let Attrs::Count(order) = *asked.attrs else { panic!("no order") };
    one(asked, |x| exact::polygamma(order as u32, x))
}

pub fn relu6(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| x.clamp(0.0, 6.0))
}

pub fn hard_sigmoid(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| (x + 3.0).clamp(0.0, 6.0) / 6.0)
}

pub fn hard_swish(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0)
}

pub fn selu(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| 1.0507009873554805 * if x > 0.0 { x } else { 1.6732632423543772 * x.exp_m1() })
}

pub fn sign(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| if x == 0.0 || x.is_nan() { x } else { x.signum() })
}

pub fn is_nan(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0].is_nan()))
}

pub fn is_inf(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0].is_infinite()))
}

pub fn is_finite(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0].is_finite()))
}

pub fn logical_not(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] == 0.0))
}

pub fn bitwise_not(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| !(x as i128) as f64)
}

fn number(asked: &Asked) -> f64 {
    let Attrs::Number(number) = asked.attrs else { panic!("no number") };
    number.to_f64()
}

pub fn leaky_relu(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| if x > 0.0 { x } else { x * number(asked) })
}

pub fn elu(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| if x > 0.0 { x } else { x.exp_m1() * number(asked) })
}
