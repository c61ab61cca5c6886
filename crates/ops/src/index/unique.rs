//! `unique`: the different elements of a vector in the order in which they first appear, where each element is
//! among them, and how often each appears.
//!
//! How many there are only the data decide. NaN equals NaN here, and 0 equals -0.

use smallvec::smallvec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Attrs, DType, Dim, OpDef, Symbol, TensorType};

use super::argsort::counts_in_i32;
use crate::infer::{cost, elements, inputs, no_attrs};
use crate::{OpId, rules};

/// `x [n] -> (values [m], places i32 [n], counts i64 [m])`
pub static UNIQUE: OpDef = OpDef {
    id: OpId::Unique as u16,
    name: "unique",
    doc: "The different elements of a vector, where each is among them, and how often each appears.",
    infer,
    axes: |_| rules::axes::mixed(&[1, 1, 1]),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(40);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("which elements are equal has no gradient"),
    jvp: Jvp::Stop("which elements are equal has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("unique", call)?;
    no_attrs("unique", call)?;
    let [length] = &x.shape[..] else {
        let (shape, expected) = (x.shape.clone(), "1 (reshape it to a vector first)".into());
        return Err(ErrorKind::RankMismatch { op: "unique", shape, expected }.into());
    };
    counts_in_i32("unique", length.known().unwrap_or(0))?;
    let count = Dim::symbol(Symbol::counted("unique_count", length.clone(), 0));
    let of =
        |dtype, length: &Dim| TensorType { dtype, shape: [length.clone()].into_iter().collect() };
    Ok(smallvec![of(x.dtype, &count), of(DType::I32, length), of(DType::I64, &count)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, n: usize| Sample::of(&[TensorType::new(dtype, [n])], Attrs::None);
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, 12)).collect();
    all.extend([of(DType::F32, 0), of(DType::F32, 1), of(DType::I8, 1025)]);
    all
}
