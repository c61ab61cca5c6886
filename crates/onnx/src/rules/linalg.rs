//! Products of matrices.

use tonnage::{Result, Tensor, einsum};

use super::Rule;
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "MatMul" => |c| one(product(&c.x(0)?, &c.x(1)?)?),
        "Gemm" => gemm,
        "Einsum" => |c| {
            let (text, all) = (c.text("equation", "")?, c.all()?);
            one(einsum(&text, &all.iter().collect::<Vec<_>>())?)
        },
        "Det" => |c| one(c.x(0)?.det()?),
        _ => return None,
    })
}

/// As NumPy multiplies: a vector is a row on the left, a column on the right.
pub fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match (a.rank(), b.rank()) {
        (1, 1) => a.expand_dims(0)?.matmul(&b.expand_dims(1)?)?.squeeze([0, 1]),
        (1, _) => a.expand_dims(0)?.matmul(b)?.squeeze(-2),
        (_, 1) => a.matmul(&b.expand_dims(1)?)?.squeeze(-1),
        _ => a.matmul(b),
    }
}

fn gemm(c: &Call) -> Result<Vec<Value>> {
    let transposed = |x: Tensor, name: &str| if c.flag(name)? { x.t() } else { Ok(x) };
    let (a, b) = (transposed(c.x(0)?, "transA")?, transposed(c.x(1)?, "transB")?);
    let (alpha, beta) = (c.float("alpha", 1.0)?, c.float("beta", 1.0)?);
    let scaled = |x: Tensor, by: f64| match (by == 1.0, x.dtype().is_float()) {
        (true, _) => Ok(x),
        (false, true) => x.mul(by),
        (false, false) if by.fract() == 0.0 => x.mul(by as i64),
        _ => Err(c.refuse(format!("a factor of {by} for the dtype {}", x.dtype()))),
    };
    let made = scaled(a.matmul(&b)?, alpha)?;
    one(match c.maybe(2)? {
        Some(more) => made.add(&scaled(more, beta)?)?,
        None => made,
    })
}
