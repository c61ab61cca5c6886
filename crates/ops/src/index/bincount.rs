//! `bincount`: how often each whole number from 0 up appears, as i64.
//!
//! A number that has no bin is an error.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, Values};
use tonnage_core::{DType, OpDef, TensorType};

use crate::infer::{bad_attrs, cost, elements, inputs, integer};
use crate::{OpId, rules};

/// `x [..] -> i64 [n]`; how many bins as [`Attrs::Count`].
pub static BINCOUNT: OpDef = OpDef {
    id: OpId::Bincount as u16,
    name: "bincount",
    doc: "How often each whole number from 0 up appears, as i64.",
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
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("bincount", call)?;
    let Attrs::Count(bins) = *call.attrs else {
        return Err(bad_attrs("bincount", call.attrs, "how many bins"));
    };
    integer("bincount", x)?;
    Ok(smallvec![TensorType::new(DType::I64, [bins])])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], bins| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Count(bins))
            .with(0, Values::Below(bins))
    };
    let integers = DType::ALL.into_iter().filter(|d| d.is_integer());
    let mut all: Vec<Sample> = integers.map(|d| of(d, &[3, 7], 5)).collect();
    all.extend([
        of(DType::I32, &[], 3),
        of(DType::I32, &[0], 3),
        of(DType::I64, &[40_000], 10),
        of(DType::I64, &[50], 5000),
    ]);
    all
}
