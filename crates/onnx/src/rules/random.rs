//! Random numbers. A seed that a file gives is not used: each call draws anew, and `set_seed` repeats them.

use tonnage::{
    DType, Elementwise, Result, Shape, random_bernoulli, random_categorical, random_normal,
    random_uniform_between,
};

use super::Rule;
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "RandomNormal" => |c| normal(c, shape(c)?, c.maybe_dtype("dtype")?.unwrap_or(DType::F32)),
        "RandomUniform" => |c| uniform(c, shape(c)?, c.maybe_dtype("dtype")?.unwrap_or(DType::F32)),
        "RandomNormalLike" => |c| {
            let x = c.x(0)?;
            normal(c, x.shape(), c.maybe_dtype("dtype")?.unwrap_or(x.dtype()))
        },
        "RandomUniformLike" => |c| {
            let x = c.x(0)?;
            uniform(c, x.shape(), c.maybe_dtype("dtype")?.unwrap_or(x.dtype()))
        },
        "Bernoulli" => |c| {
            let x = c.x(0)?;
            let dtype = c.maybe_dtype("dtype")?.unwrap_or(x.dtype());
            one(random_bernoulli(&x)?.cast(dtype)?)
        },
        "Multinomial" => |c| {
            let dtype = c.maybe_dtype("dtype")?.unwrap_or(DType::I32);
            one(random_categorical(&c.x(0)?, c.length(c.int("sample_size", 1)?)?)?.cast(dtype)?)
        },
        _ => return None,
    })
}

fn shape(c: &Call) -> Result<Shape> {
    let sizes = c.ints("shape")?.unwrap_or_default();
    let sizes: Vec<usize> = sizes.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?;
    Ok(Shape::from(sizes.as_slice()))
}

fn normal(c: &Call, shape: Shape, dtype: DType) -> Result<Vec<Value>> {
    let (mean, scale) = (c.float("mean", 0.0)?, c.float("scale", 1.0)?);
    one(random_normal(shape, dtype)?.mul(scale)?.add(mean)?)
}

fn uniform(c: &Call, shape: Shape, dtype: DType) -> Result<Vec<Value>> {
    let (low, high) = (c.float("low", 0.0)?, c.float("high", 1.0)?);
    one(random_uniform_between(low, high, shape, dtype)?)
}
