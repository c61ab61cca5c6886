//! Images lie channels-last, as kernels read them, and models speak of them channels-first.
//!
//! What a rule gives back is always channels-first: a transpose of what was computed, which takes no bytes. The importer remembers what lies
//! under such a transpose, so that a rule that can work on it does, and no node in between writes the image out in another order. A transpose that nobody
//! reads is no part of the plan. Only ops that need the order of the file, such as `Reshape`, write it out.
//!
//! Decision: `docs/decisions/onnx-weights-are-variables.md`.

use std::cell::RefCell;
use std::collections::HashMap;

use tonnage::{Result, Tensor, bind};

use crate::call::Call;
use crate::rules::Rule;
use crate::value::Value;

/// What lies under images: channels-last, by the identity of the same channels-first.
#[derive(Default)]
pub struct Images(RefCell<HashMap<u64, Tensor>>);

impl Images {
    /// The image channels-last, where it lies so.
    pub fn under(&self, image: &Tensor) -> Option<Tensor> {
        self.0.borrow().get(&bind::identity(image)).cloned()
    }

    /// The image channels-last: what lies under it, or a transpose.
    pub fn last(&self, image: &Tensor) -> Result<Tensor> {
        match self.under(image) {
            Some(under) => Ok(under),
            None => image.transpose(&last_order(image.rank())),
        }
    }

    /// An image that lies channels-last, channels-first.
    pub fn first(&self, under: Tensor) -> Result<Tensor> {
        let image = under.transpose(&first_order(under.rank()))?;
        self.0.borrow_mut().insert(bind::identity(&image), under);
        Ok(image)
    }
}

/// Where the axes of an image channels-last come from.
pub fn last_order(rank: usize) -> Vec<i64> {
    let mut order: Vec<i64> = (0..rank as i64).collect();
    if rank > 1 {
        let channels = order.remove(1);
        order.push(channels);
    }
    order
}

/// Where the axes of an image channels-first come from.
pub fn first_order(rank: usize) -> Vec<i64> {
    let mut order: Vec<i64> = (0..rank as i64).collect();
    if rank > 1 {
        let channels = order.remove(rank - 1);
        order.insert(1, channels);
    }
    order
}

/// Where an axis is channels-last.
pub fn axis_under(axis: usize, rank: usize) -> usize {
    match axis {
        0 => 0,
        1 => rank - 1,
        axis => axis - 1,
    }
}

/// Runs an elementwise rule on what lies under its images; none where none of its inputs is one.
///
/// # Errors
/// As the rule.
pub fn elementwise(call: &Call, rule: Rule) -> Result<Option<Vec<Value>>> {
    if !is_elementwise(&call.node.op) || call.version < 7 {
        return Ok(None);
    }
    let images = &call.importer.images;
    let tensors = || call.inputs.iter().flat_map(Value::tensors);
    let rank = tensors().map(Tensor::rank).max().unwrap_or(0);
    let is_image = |x: &Tensor| x.rank() == rank && images.under(x).is_some();
    if rank < 3 || !tensors().any(is_image) {
        return Ok(None);
    }
    let mut inputs = Vec::new();
    for (at, value) in call.inputs.iter().enumerate() {
        inputs.push(match value {
            Value::Tensor(tensor) if tensor.shape().iter().all(|dim| dim.is(1)) => value.clone(),
            Value::Tensor(_) => Value::Tensor(under(call, call.x(at)?, rank)?),
            other => other.clone(),
        });
    }
    let attributes = call.attributes.clone();
    let made = rule(&Call { inputs, attributes, ..*call })?;
    made.into_iter()
        .map(|value| Ok(Value::Tensor(images.first(value.tensor()?)?)))
        .collect::<Result<_>>()
        .map(Some)
}

/// What is broadcast to an image, as it is broadcast to what lies under that.
fn under(call: &Call, x: Tensor, rank: usize) -> Result<Tensor> {
    let images = &call.importer.images;
    let wide = |x: Tensor| {
        let more = rank - x.rank();
        (0..more).try_fold(x, |x, _| x.expand_dims(0))
    };
    match x.is_symbolic() {
        true => images.last(&wide(x)?),
        false => bind::outside_of_traces(|| images.last(&wide(x)?)),
    }
}

/// Ops that compute each element of their one result from those at the same place of their inputs, as those are broadcast.
pub fn is_elementwise(op: &str) -> bool {
    const OPS: &[&str] = &[
        "Abs",
        "Acos",
        "Acosh",
        "Add",
        "And",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Cast",
        "CastLike",
        "Ceil",
        "Celu",
        "Clip",
        "Cos",
        "Cosh",
        "Div",
        "Elu",
        "Equal",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "Greater",
        "GreaterOrEqual",
        "HardSigmoid",
        "HardSwish",
        "IsInf",
        "IsNaN",
        "LeakyRelu",
        "Less",
        "LessOrEqual",
        "Log",
        "Max",
        "Mean",
        "Min",
        "Mish",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "PRelu",
        "Pow",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Shrink",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Sub",
        "Sum",
        "Swish",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
        "Where",
        "Xor",
    ];
    OPS.binary_search(&op).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_each_others_inverse_and_axes_follow_them() {
        for rank in 2..6 {
            let (last, first) = (last_order(rank), first_order(rank));
            for axis in 0..rank {
                assert_eq!(last[first[axis] as usize], axis as i64);
                assert_eq!(last[axis_under(axis, rank)], axis as i64);
            }
        }
    }

    #[test]
    fn the_elementwise_ops_are_sorted_and_have_rules() {
        assert!(
            is_elementwise("Abs")
                && is_elementwise("Xor")
                && is_elementwise("Relu")
                && is_elementwise("PRelu")
        );
        assert!(!is_elementwise("Softmax") && !is_elementwise("Conv"));
    }
}
