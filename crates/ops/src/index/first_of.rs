//! `first_of`: for each of some indices, where it first occurs among them.
//!
//! What rows of a gradient that have the same index are added up by: each goes to the first of its kind. Positions
//! count in logical order.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, Values,
};
use tonnage_core::{Call, DType, OpDef, TensorType};

use crate::OpId;
use crate::infer::{cost, elements, inputs, integer, no_attrs};

const WHY: &str = "an index has no gradient";

/// `indices -> ` the position of the first that is equal, in their shape.
pub static FIRST_OF: OpDef = OpDef {
    id: OpId::FirstOf as u16,
    name: "first_of",
    doc: "For each index, where it first occurs among all of them.",
    infer,
    axes: |call| AxisMap {
        outputs: vec![vec![AxisOf::Mixed; call.inputs[0].shape.rank()]],
        summed: vec![],
    },
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let count = call.inputs.first().map_or(0, elements);
        let made = infer(call).unwrap_or_default();
        let steps = u64::from(64 - count.leading_zeros());
        cost(count.saturating_mul(steps), made.iter().chain(call.inputs))
    },
    grad: Grad::Stop(WHY),
    jvp: Jvp::Stop(WHY),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [indices] = inputs("first_of", call)?;
    no_attrs("first_of", call)?;
    integer("first_of", indices)?;
    Ok(smallvec![TensorType { dtype: DType::I64, shape: indices.shape.clone() }])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], below| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::None)
            .with(0, Values::Between(0.0, below))
    };
    vec![
        of(DType::I64, &[7], 3.0),
        of(DType::I32, &[2, 3], 4.0),
        of(DType::U8, &[40], 9.0),
        of(DType::U64, &[1025], 100.0),
        of(DType::I32, &[20_000], 3000.0),
        of(DType::I16, &[], 5.0),
        of(DType::I8, &[0], 5.0),
    ]
}
