//! Powers of e that add up to 1, and what is made of them: `softmax`, `log_softmax`, and cross-entropies, which never make
//! the probabilities. All along the last axis.
//!
//! The largest element is subtracted first, and what is made stays relative to it: `(x - largest) - log(sum)`. The
//! logarithm of the sum is never added to the largest element, where its digits would be lost beside a large one, so it is
//! not saved for the backward pass either: it recomputes the powers.

pub mod cross_entropy;
pub mod cross_entropy_dense;
pub mod cross_entropy_dense_grad;
pub mod cross_entropy_grad;
pub mod log;
pub mod log_grad;
pub mod plain;
pub mod plain_grad;

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{AxisMap, AxisOf, Cost};
use tonnage_core::{Attrs, Call, DType, Sizes, TensorType};

use crate::infer::{along, bad_attrs, cost, elements, no_attrs, rank_at_least};

/// Refuses what is no float with at least one axis, and attributes.
fn check(op: &'static str, call: &Call, x: &TensorType) -> Result<()> {
    no_attrs(op, call)?;
    check_rows(op, x)
}

/// Refuses what has no rows of floats.
fn check_rows(op: &'static str, x: &TensorType) -> Result<()> {
    crate::infer::dtype(op, x, DType::is_float, "f64, f32, f16 or bf16 (cast first)")?;
    rank_at_least(op, x, 1, "it runs along the last axis")
}

/// How much of a label is spread over all classes.
pub fn smoothing(op: &'static str, attrs: &Attrs) -> Result<f64> {
    let Attrs::Smoothing(share) = attrs else { return Err(bad_attrs(op, attrs, "a smoothing")) };
    let share = share.to_f64();
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => {
            let what = format!("labels smoothed by {share}");
            Err(bad_argument(op, what, "use a share between 0 and 1"))
        }
    }
}

/// What sums are computed and held in.
pub fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// All axes but the last run along those of the first `inputs` inputs.
fn rows_axes(call: &Call, inputs: &[usize], last: bool) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let of = |axis: usize| -> AxisOf {
        let all: Vec<(usize, usize)> = inputs.iter().map(|input| (*input, axis)).collect();
        along(&all)
    };
    let mut axes: Vec<AxisOf> = (0..rank - 1).map(of).collect();
    if last {
        axes.push(AxisOf::Mixed);
    }
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

/// A number of flops an element, and everything read and written once.
fn costs(call: &Call, flops: u64, made: &[TensorType]) -> Cost {
    let most = call.inputs.iter().map(elements).max().unwrap_or(0);
    cost(most.saturating_mul(flops), call.inputs.iter().chain(made))
}

/// Rows to test with.
fn rows_to_test() -> Vec<(DType, Sizes)> {
    let of = |dtype, sizes: &[usize]| (dtype, Sizes::from_slice(sizes));
    vec![
        of(DType::F64, &[2, 3]),
        of(DType::F32, &[2, 3]),
        of(DType::F16, &[2, 3]),
        of(DType::BF16, &[2, 3]),
        of(DType::F32, &[4, 2, 3]),
        of(DType::F32, &[3]),
        of(DType::F32, &[0, 3]),
        of(DType::F32, &[2, 1025]),
        of(DType::F32, &[300, 70]),
    ]
}
