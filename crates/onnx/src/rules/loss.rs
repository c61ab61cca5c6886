//! Losses.

use tonnage::{DType, Elementwise, Result, Tensor};

use super::Rule;
use crate::call::Call;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "NegativeLogLikelihoodLoss" => |c| Ok(vec![likelihood(c, &c.x(0)?)?.into()]),
        "SoftmaxCrossEntropyLoss" => |c| {
            let logarithms = c.x(0)?.log_softmax(1)?;
            Ok(vec![likelihood(c, &logarithms)?.into(), logarithms.into()])
        },
        _ => return None,
    })
}

/// The negative of what each target's class has, weighed by class.
fn likelihood(c: &Call, x: &Tensor) -> Result<Tensor> {
    let target = c.x(1)?.cast(DType::I64)?;
    let classes = c.sizes(x)?[1] as i64;
    // A target that is ignored may be no class.
    let places = target.clip(0, classes - 1)?;
    let losses = x.take_along_axis(&places.expand_dims(1)?, 1)?.squeeze(1)?.neg()?;
    let ignored = c.maybe_int("ignore_index")?.map(|index| target.equal(index)).transpose()?;
    let weights = match c.maybe(2)? {
        Some(weights) => Some(weights.gather(&places, 0)?),
        None if ignored.is_some() => Some(losses.ones_like()?),
        None => None,
    };
    let weights = match (weights, ignored) {
        (Some(weights), Some(ignored)) => Some(ignored.where_(&weights.zeros_like()?, &weights)?),
        (weights, _) => weights,
    };
    let weighed = match &weights {
        Some(weights) => losses.mul(weights)?,
        None => losses,
    };
    match (c.text("reduction", "mean")?.as_str(), weights) {
        ("none", _) => Ok(weighed),
        ("sum", _) => weighed.sum_all(),
        ("mean", None) => weighed.mean_all(),
        ("mean", Some(weights)) => weighed.sum_all()?.div(&weights.sum_all()?),
        (other, _) => Err(c.refuse(format!("the attribute `reduction` is `{other}`"))),
    }
}
