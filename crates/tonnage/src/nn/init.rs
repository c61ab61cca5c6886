//! First values of parameters. Random ones are recipes: a parameter takes no bytes before it is first written.

use tonnage_core::{DType, Result, Shape};

use crate::make;
use crate::ops::Elementwise;
use crate::random::{random_normal, random_truncated_normal, random_uniform_between};
use crate::tensor::Tensor;

/// How a parameter starts. "In" and "out" are how many numbers go into one and come out of one: the last two axes, times
/// the window of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initializer {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// All the same.
    Constant(f64),
    /// Evenly spread between two numbers.
    Uniform(f64, f64),
    /// Normal, of a mean and a deviation.
    Normal(f64, f64),
    /// Normal, of a mean and a deviation, with nothing beyond two deviations.
    TruncatedNormal(f64, f64),
    /// Glorot and Bengio 2010: even, within `sqrt(6 / (in + out))`.
    GlorotUniform,
    /// Glorot and Bengio 2010: normal, with a variance of `2 / (in + out)`.
    GlorotNormal,
    /// He et al. 2015: even, within `sqrt(6 / in)`.
    HeUniform,
    /// He et al. 2015: normal, with a variance of `2 / in`.
    HeNormal,
    /// LeCun et al. 1998: even, within `sqrt(3 / in)`.
    LeCunUniform,
    /// LeCun et al. 1998: normal, with a variance of `1 / in`.
    LeCunNormal,
    /// Saxe et al. 2014: rows or columns that stand at right angles to each other, times a number; axes but the last count as one. It is no
    /// recipe: its bytes are taken when it is made.
    Orthogonal(f64),
}

impl Initializer {
    /// A first value.
    #[track_caller]
    pub fn make(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let (into, out) = fans(shape);
        let shape = Shape::from(shape);
        let normal = |variance: f64| {
            // What is cut off at two deviations takes a little of the variance with it.
            let deviation = variance.sqrt() / 0.879_625_661_034_239_8;
            random_truncated_normal(shape.clone(), dtype)?.mul(deviation)
        };
        let uniform = |most: f64| random_uniform_between(-most, most, shape.clone(), dtype);
        match *self {
            Initializer::Zeros => make::full(0.0, dtype, shape),
            Initializer::Ones => make::full(1.0, dtype, shape),
            Initializer::Constant(value) => make::full(value, dtype, shape),
            Initializer::Uniform(low, high) => random_uniform_between(low, high, shape, dtype),
            Initializer::Normal(mean, deviation) => {
                random_normal(shape, dtype)?.mul(deviation)?.add(mean)
            }
            Initializer::TruncatedNormal(mean, deviation) => {
                random_truncated_normal(shape, dtype)?.mul(deviation)?.add(mean)
            }
            Initializer::GlorotUniform => uniform((6.0 / (into + out)).sqrt()),
            Initializer::GlorotNormal => normal(2.0 / (into + out)),
            Initializer::HeUniform => uniform((6.0 / into).sqrt()),
            Initializer::HeNormal => normal(2.0 / into),
            Initializer::LeCunUniform => uniform((3.0 / into).sqrt()),
            Initializer::LeCunNormal => normal(1.0 / into),
            Initializer::Orthogonal(gain) => orthogonal(shape, dtype, gain),
        }
    }
}

/// The `Q` of a normal matrix; since `R` has no element below 0 on its diagonal, every rotation is as likely as any other (Mezzadri 2007).
fn orthogonal(shape: Shape, dtype: DType, gain: f64) -> Result<Tensor> {
    let sizes = shape.sizes().unwrap_or_default();
    let columns = sizes.last().copied().unwrap_or(1);
    let rows: usize = sizes.iter().rev().skip(1).product();
    let computed = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let (tall, narrow) = (rows.max(columns), rows.min(columns));
    let (q, _) = random_normal([tall, narrow], computed)?.qr()?;
    let q = q.mul(gain)?;
    let oriented = if rows < columns { q.t()? } else { q };
    oriented.reshape(shape)?.cast(dtype)
}

/// How many numbers go into one and come out of one; at least 1.
fn fans(shape: &[usize]) -> (f64, f64) {
    let at_least_one = |n: usize| n.max(1) as f64;
    match shape {
        [] => (1.0, 1.0),
        [n] => (at_least_one(*n), at_least_one(*n)),
        [window @ .., into, out] => {
            let window: usize = window.iter().product();
            (at_least_one(window * into), at_least_one(window * out))
        }
    }
}
