//! `bitcast`: the same bits as elements of another dtype of the same width.
//!
//! Bits of all kinds are numbers of the other dtype: of floats they may be NaN. Truth values have bits of their own and
//! are refused, as is another width, which would be another shape.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{OpId, rules};

/// The same bits as elements of another dtype.
pub static BITCAST: OpDef = OpDef {
    id: OpId::Bitcast as u16,
    name: "bitcast",
    doc: "The same bits as elements of another dtype of the same width.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| Cost::local(0, rules::cost::moved(call, &call.inputs[..1])),
    grad: Grad::Stop("bits have no slope"),
    jvp: Jvp::Stop("bits have no slope"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let Attrs::DType(to) = *call.attrs else { return Err(rules::infer::wrong_attrs(call)) };
    let from = call.inputs[0].dtype;
    if from.size() != to.size() || from == DType::Bool || to == DType::Bool {
        let what = format!("the bits of {from} are not elements of {to}");
        return Err(bad_argument(call.op, what, "take numbers of the same width"));
    }
    Ok(smallvec![TensorType { dtype: to, shape: call.inputs[0].shape.clone() }])
}

fn samples() -> Vec<Sample> {
    let of =
        |from, to, shape: &[usize]| Sample::of(&[TensorType::new(from, shape)], Attrs::DType(to));
    let mut all = vec![
        of(DType::F32, DType::I32, &[2, 3]),
        of(DType::F32, DType::U32, &[2, 3]),
        of(DType::I32, DType::U32, &[2, 3]),
        of(DType::F16, DType::I16, &[2, 3]),
        of(DType::BF16, DType::U16, &[2, 3]),
        of(DType::I8, DType::U8, &[2, 3]),
        of(DType::U64, DType::I64, &[2, 3]),
    ];
    all.extend([&[][..], &[0], &[1], &[20_000]].map(|shape| of(DType::F32, DType::I32, shape)));
    all
}
