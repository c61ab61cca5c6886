//! `random_categorical`: which of several classes is drawn, by their logits along the last axis, as i64.
//!
//! A uniform share of the sum of exponentials falls to one class. The largest logit is taken out first; NaN has no
//! weight, and a row of minus infinities falls to its classes evenly.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, Dim, OpDef, TensorType};

use super::check_key;
use crate::infer::{bad_attrs, cost, dtype, elements, inputs, joined, rank_at_least};
use crate::{OpId, rules};

/// `(logits [.., n], key u32 [2]) -> i64 [.., samples]`; how many samples as [`Attrs::Count`].
pub static RANDOM_CATEGORICAL: OpDef = OpDef {
    id: OpId::RandomCategorical as u16,
    name: "random_categorical",
    doc: "Which of several classes is drawn, by their logits along the last axis, as i64.",
    infer,
    // Each sample draws by its number: a piece would draw other numbers.
    axes: |call| rules::axes::mixed(&[call.inputs[0].shape.rank()]),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(20);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("a class has no gradient"),
    jvp: Jvp::Stop("a class has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let op = "random_categorical";
    let [logits, key] = inputs(op, call)?;
    let Attrs::Count(samples) = *call.attrs else {
        return Err(bad_attrs(op, call.attrs, "how many samples"));
    };
    dtype(op, logits, DType::is_float, "a float")?;
    check_key(op, key)?;
    rank_at_least(op, logits, 1, "the last axis holds the classes")?;
    let (last, outer) =
        (&logits.shape[logits.shape.rank() - 1], &logits.shape[..logits.shape.rank() - 1]);
    if last.is(0) {
        let what = format!("the logits {logits} have no classes");
        return Err(bad_argument(op, what, "there has to be one to draw"));
    }
    Ok(smallvec![TensorType::new(DType::I64, joined(&[outer, &[Dim::Known(samples)]]))])
}

/// Types and attributes to test with.
fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], samples| {
        let types = [TensorType::new(dtype, shape), TensorType::new(DType::U32, [2])];
        Sample::of(&types, Attrs::Count(samples))
    };
    vec![
        of(DType::F64, &[3, 5], 20),
        of(DType::F32, &[4], 9),
        of(DType::F16, &[2, 3], 4),
        of(DType::BF16, &[2, 3], 4),
        of(DType::F32, &[2, 2, 7], 1),
        of(DType::F32, &[2, 3], 0),
        of(DType::F32, &[0, 3], 2),
        of(DType::F32, &[40, 600], 2),
    ]
}
