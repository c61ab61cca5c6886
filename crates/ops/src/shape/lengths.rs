//! `lengths`: lengths of axes as a vector of numbers.
//!
//! A kernel, though it reads nothing: a length that is open in a graph is known to the plan, and one that
//! the data decide only while it runs.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use crate::{OpId, rules};

/// Lengths of axes as a vector of numbers.
pub static LENGTHS: OpDef = OpDef {
    id: OpId::Lengths as u16,
    name: "lengths",
    doc: "Lengths of axes as a vector of numbers.",
    infer,
    axes: |_| rules::axes::mixed(&[1]),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let bytes = infer(call).map_or(0, |made| rules::cost::bytes(&made[0]));
        Cost::local(0, bytes)
    },
    grad: Grad::Stop("it has no inputs"),
    jvp: Jvp::Stop("it has no inputs"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 0)?;
    let Attrs::Lengths { of, dtype } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    if *dtype == DType::Bool {
        let supported = "a number";
        return Err(ErrorKind::DTypeUnsupported { op: call.op, dtype: *dtype, supported }.into());
    }
    Ok(smallvec![TensorType::new(*dtype, [of.rank()])])
}

fn samples() -> Vec<Sample> {
    let of = |dims: &[usize], dtype| {
        let of: Shape = dims.iter().map(|n| Dim::Known(*n)).collect();
        Sample::of(&[], Attrs::Lengths { of, dtype })
    };
    let numbers = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
    let mut all: Vec<Sample> = numbers.map(|dtype| of(&[3, 0, 100], dtype)).collect();
    all.extend([of(&[], DType::I64), of(&[1 << 40], DType::I64)]);
    all
}
