//! Steps of optimizers, of the domain `ai.onnx.preview.training`.

use tonnage::{DType, Elementwise, Result, Tensor};

use super::Rule;
use crate::call::Call;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Adagrad" => |c| each(c, 3, adagrad),
        "Adam" => |c| each(c, 4, adam),
        "Momentum" => |c| each(c, 3, momentum),
        _ => return None,
    })
}

/// A step for each parameter: inputs and outputs stand by kind, those of all parameters together.
fn each(
    c: &Call,
    kinds: usize,
    step: fn(&Call, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Value>> {
    let all = c.all()?;
    let count = all.len().saturating_sub(2) / kinds;
    let mut made = Vec::new();
    for at in 0..count {
        let own: Vec<Tensor> = (0..kinds).map(|kind| all[2 + kind * count + at].clone()).collect();
        made.push(step(c, &own)?);
    }
    let kinds = made.first().map_or(0, Vec::len);
    let by_kind = (0..kinds).flat_map(|kind| made.iter().map(move |own| own[kind].clone()));
    Ok(by_kind.map(Value::Tensor).collect())
}

fn regularized(c: &Call, x: &Tensor, gradient: &Tensor) -> Result<Tensor> {
    x.mul(c.float("norm_coefficient", 0.0)?)?.add(gradient)
}

fn adagrad(c: &Call, own: &[Tensor]) -> Result<Vec<Tensor>> {
    let [x, gradient, squares] = own else {
        return Err(c.refuse("other than three tensors a parameter"));
    };
    let steps = c.x(1)?.cast(x.dtype())?;
    let rate =
        c.x(0)?.cast(x.dtype())?.div(&steps.mul(c.float("decay_factor", 0.0)?)?.add(1.0)?)?;
    let gradient = regularized(c, x, gradient)?;
    let squares = squares.add(&(&gradient).square()?)?;
    let by = (&squares).sqrt()?.add(c.float("epsilon", 1e-6f32.into())?)?;
    Ok(vec![x.sub(&rate.mul(&gradient)?.div(&by)?)?, squares])
}

fn adam(c: &Call, own: &[Tensor]) -> Result<Vec<Tensor>> {
    let [x, gradient, mean, squares] = own else {
        return Err(c.refuse("other than four tensors a parameter"));
    };
    let (alpha, beta) = (c.float("alpha", 0.9f32.into())?, c.float("beta", 0.999f32.into())?);
    let gradient = regularized(c, x, gradient)?;
    let mean = mean.mul(alpha)?.add(&gradient.mul(1.0 - alpha)?)?;
    let squares = squares.mul(beta)?.add(&(&gradient).square()?.mul(1.0 - beta)?)?;
    let steps = c.x(1)?.cast(DType::F64)?;
    let powered = |base: f64| -> Result<Tensor> { steps.mul(base.ln())?.exp()?.neg()?.add(1.0) };
    let corrected = powered(beta)?.sqrt()?.div(&powered(alpha)?)?;
    let first = steps.greater(0.0)?;
    let factor = first.where_(&corrected, &corrected.ones_like()?)?.cast(x.dtype())?;
    let rate = c.x(0)?.cast(x.dtype())?.mul(&factor)?;
    let by = (&squares).sqrt()?.add(c.float("epsilon", 1e-6f32.into())?)?;
    let next =
        x.sub(&rate.mul(&mean.div(&by)?)?)?.mul(1.0 - c.float("norm_coefficient_post", 0.0)?)?;
    Ok(vec![next, mean, squares])
}

fn momentum(c: &Call, own: &[Tensor]) -> Result<Vec<Tensor>> {
    let [x, gradient, mean] = own else {
        return Err(c.refuse("other than three tensors a parameter"));
    };
    let (alpha, beta) = (c.float("alpha", 0.9)?, c.float("beta", 1.0)?);
    let rate = c.x(0)?.cast(x.dtype())?;
    let gradient = regularized(c, x, gradient)?;
    // The first step takes the gradient whole.
    let one = beta_of(c, x, beta)?;
    let mean = mean.mul(alpha)?.add(&gradient.mul(&one)?)?;
    let step = match c.text("mode", "standard")?.as_str() {
        "standard" => mean.clone(),
        "nesterov" => gradient.add(&mean.mul(alpha)?)?,
        other => return Err(c.refuse(format!("the attribute `mode` is `{other}`"))),
    };
    Ok(vec![x.sub(&rate.mul(&step)?)?, mean])
}

/// What the gradient counts: 1 in the first step, `beta` from then on.
fn beta_of(c: &Call, x: &Tensor, beta: f64) -> Result<Tensor> {
    let first = c.x(1)?.greater(0)?.cast(x.dtype())?;
    first.mul(beta - 1.0)?.add(1.0)
}
