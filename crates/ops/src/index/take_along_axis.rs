//! `take_along_axis`: elements of each row by an index of their own, along the last axis.
//! The transpose of `put_along_axis`.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, Shape, TensorType};

use super::along::{leading_axes, one_output};
use super::put_along_axis::PUT_ALONG_AXIS;
use crate::OpId;
use crate::infer::{along, cost, inputs, integer, no_attrs, rank_at_least, shape};

/// `(x [.., n], indices [.., k]) -> [.., k]`
pub static TAKE_ALONG_AXIS: OpDef = OpDef {
    id: OpId::TakeAlongAxis as u16,
    name: "take_along_axis",
    doc: "Elements of each row of the last axis, by indices of their own.",
    infer,
    axes: |call| {
        let rank = call.inputs[1].shape.rank();
        one_output(leading_axes(rank, 2, along(&[(1, rank.saturating_sub(1))])))
    },
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(&made).chain(call.inputs.get(1)))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x, indices] = inputs("take_along_axis", call)?;
    no_attrs("take_along_axis", call)?;
    integer("take_along_axis", indices)?;
    rank_at_least("take_along_axis", x, 1, "it takes along the last axis")?;
    rank_at_least("take_along_axis", indices, 1, "it takes along the last axis")?;
    let mut needed: Shape = indices.shape.clone();
    if let (Some(last), Some(own)) = (needed.last_mut(), x.shape.last()) {
        *last = own.clone();
    }
    shape("take_along_axis", &x.shape, &needed, "all axes but the last must be equal")?;
    Ok(smallvec![TensorType { dtype: x.dtype, shape: indices.shape.clone() }])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let last = call.inputs[0].shape.last().cloned();
    let length = Attrs::Shape(last.into_iter().collect());
    let put = emit.apply(&PUT_ALONG_AXIS, vec![call.input(1)?, call.grad()?], length)?;
    Ok(vec![Some(Cotangent::Dense(put)), None])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, lead: &[usize], n: usize, index, k: usize| {
        let ty = |dtype, last| TensorType::new(dtype, [lead, &[last]].concat());
        Sample::of(&[ty(dtype, n), ty(index, k)], Attrs::None).with(1, Values::Below(n))
    };
    vec![
        of(DType::F64, &[3], 5, DType::I32, 4),
        of(DType::F64, &[2, 3], 4, DType::I64, 6),
        of(DType::F32, &[], 7, DType::U8, 3),
        of(DType::F32, &[3], 1025, DType::I16, 1023),
        of(DType::F32, &[1024], 3, DType::I32, 2),
        of(DType::F16, &[2], 4, DType::I8, 3),
        of(DType::BF16, &[2], 4, DType::U16, 3),
        of(DType::I64, &[2], 4, DType::U32, 3),
        of(DType::U8, &[2], 4, DType::U64, 3),
        of(DType::F32, &[2], 4, DType::I32, 0),
        of(DType::F32, &[0], 4, DType::I32, 2),
    ]
}
