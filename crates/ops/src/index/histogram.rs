//! `histogram`: how many elements lie in each of several even parts of a range, as i64.
//!
//! Elements beyond an end count in the part at that end; NaN counts nowhere.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, OpDef, Scalar, TensorType};

use crate::infer::{bad_attrs, cost, elements, inputs, number};
use crate::{OpId, rules};

/// `x [..] -> i64 [bins]`
pub static HISTOGRAM: OpDef = OpDef {
    id: OpId::Histogram as u16,
    name: "histogram",
    doc: "How many elements lie in each of several even parts of a range, as i64.",
    infer,
    axes: |_| rules::axes::mixed(&[1]),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(call.inputs.first().map_or(0, elements), made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("a count has no gradient"),
    jvp: Jvp::Stop("a count has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// The lowest and the highest value, and how many bins there are between them.
pub fn asked(call: &Call) -> Result<(f64, f64, usize)> {
    let Attrs::Histogram { low, high, bins } = *call.attrs else {
        return Err(bad_attrs("histogram", call.attrs, "a range and how many parts"));
    };
    let (low, high) = (low.to_f64(), high.to_f64());
    if low >= high || !low.is_finite() || !high.is_finite() || bins == 0 {
        let what = format!("{bins} parts of the range from {low} to {high}");
        return Err(bad_argument("histogram", what, "use finite ends, the lower one first"));
    }
    Ok((low, high, bins))
}

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("histogram", call)?;
    let (_, _, bins) = asked(call)?;
    number("histogram", x)?;
    Ok(smallvec![TensorType::new(DType::I64, [bins])])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], low: f64, high: f64, bins| {
        let (low, high) = (Scalar::Float(low), Scalar::Float(high));
        let attrs = Attrs::Histogram { low, high, bins };
        Sample::of(&[TensorType::new(dtype, shape)], attrs)
    };
    let numbers = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
    let mut all: Vec<Sample> = numbers.map(|d| of(d, &[3, 7], -1.5, 1.5, 4)).collect();
    all.extend([
        of(DType::F32, &[], 0.0, 1.0, 1),
        of(DType::F32, &[0], 0.0, 1.0, 3),
        of(DType::F32, &[40_000], -2.0, 2.0, 16),
    ]);
    all
}
