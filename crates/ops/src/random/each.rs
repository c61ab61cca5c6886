//! Numbers that are drawn for each element of a parameter: type rule, axes, cost and samples that `random_gamma` and
//! `random_poisson` share.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::row::{AxisMap, Call, Cost, Sample, Types, Values};
use tonnage_core::{DType, TensorType};

use super::check_key;
use crate::infer::{cost, dtype, elements, inputs, no_attrs};
use crate::rules;

/// `(parameter [..], key u32 [2]) -> [..]`
pub fn infer(call: &Call) -> Result<Types> {
    let [parameter, key] = inputs(call.op, call)?;
    no_attrs(call.op, call)?;
    dtype(call.op, parameter, DType::is_float, "a float")?;
    check_key(call.op, key)?;
    Ok([parameter.clone()].into_iter().collect())
}

/// Each element draws by its number: a piece would draw other numbers.
pub fn axes(call: &Call) -> AxisMap {
    rules::axes::mixed(&[call.inputs[0].shape.rank()])
}

/// Some draws an element.
pub fn weight(call: &Call) -> Cost {
    let flops = call.inputs.first().map_or(0, elements).saturating_mul(200);
    cost(flops, call.inputs.iter().chain(call.inputs))
}

/// Parameters of every dtype, small ones and some up to `most`.
pub fn samples(most: f64) -> Vec<Sample> {
    let of = |dtype, shape: &[usize], low: f64, high: f64| {
        let types = [TensorType::new(dtype, shape), TensorType::new(DType::U32, [2])];
        Sample::of(&types, Attrs::None).with(0, Values::Between(low, high))
    };
    vec![
        of(DType::F64, &[2, 40], 0.1, 3.0),
        of(DType::F32, &[50], 2.0, most),
        of(DType::F16, &[5], 0.5, 4.0),
        of(DType::BF16, &[5], 0.5, 4.0),
        of(DType::F32, &[], 1.0, 2.0),
        of(DType::F32, &[0, 3], 1.0, 2.0),
        of(DType::F64, &[700], 1.0, 60.0),
    ]
}
