//! `put_along_axis`: zeros with values put at an index of their own in each row of the last axis.
//!
//! Values at equal indices add up in order, as in `scatter_add`: so it is the transpose of
//! `take_along_axis`, and the gradient of `top_k`. The attributes say the length of the last axis alone;
//! the other axes come from the inputs, so that a call can be cut along them.

use smallvec::{SmallVec, smallvec};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, Shape, TensorType};

use super::along::leading_axes;
use super::take_along_axis::TAKE_ALONG_AXIS;
use crate::OpId;
use crate::infer::{
    bad_attrs, cost, elements, inputs, integer, joined, number, rank_at_least, shape,
};

/// `(indices [.., k], values [.., k]) -> [.., n]`; `[n]` as [`Attrs::Shape`].
pub static PUT_ALONG_AXIS: OpDef = OpDef {
    id: OpId::PutAlongAxis as u16,
    name: "put_along_axis",
    doc: "Zeros with values added at indices along the last axis.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(call.inputs.get(1).map_or(0, elements), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[1]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [indices, values] = inputs("put_along_axis", call)?;
    let Attrs::Shape(length) = call.attrs else {
        return Err(bad_attrs("put_along_axis", call.attrs, "the length of the last axis as [n]"));
    };
    if length.rank() != 1 {
        return Err(bad_attrs("put_along_axis", call.attrs, "the length of one axis as [n]"));
    }
    integer("put_along_axis", indices)?;
    number("put_along_axis", values)?;
    rank_at_least("put_along_axis", indices, 1, "it puts along the last axis")?;
    shape("put_along_axis", &values.shape, &indices.shape, "give each value one index")?;
    let leading = &values.shape[..values.shape.rank() - 1];
    Ok(smallvec![TensorType::new(values.dtype, joined(&[leading, length]))])
}

fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[1].shape.rank();
    let last = rank.saturating_sub(1);
    AxisMap {
        outputs: vec![leading_axes(rank, 2, AxisOf::Mixed)],
        summed: vec![SmallVec::from_slice(&[(0, last), (1, last)])],
    }
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let taken = vec![call.grad()?, call.input(0)?];
    let values = emit.apply(&TAKE_ALONG_AXIS, taken, Attrs::None)?;
    Ok(vec![None, Some(Cotangent::Dense(values))])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, lead: &[usize], k: usize, index, n: usize| {
        let ty = |dtype| TensorType::new(dtype, [lead, &[k]].concat());
        let length = Attrs::Shape(Shape::from([n]));
        Sample::of(&[ty(index), ty(dtype)], length).with(0, Values::Below(n))
    };
    vec![
        of(DType::F64, &[3], 5, DType::I32, 4),
        of(DType::F64, &[2, 3], 4, DType::I64, 6),
        of(DType::F32, &[], 7, DType::U8, 3),
        of(DType::F32, &[3], 1023, DType::I16, 1025),
        of(DType::F32, &[1024], 3, DType::I32, 2),
        of(DType::F16, &[2], 4, DType::I8, 3),
        of(DType::BF16, &[2], 4, DType::U16, 3),
        of(DType::I64, &[2], 4, DType::U32, 3),
        of(DType::I8, &[2], 4, DType::U64, 3),
        of(DType::F32, &[2], 0, DType::I32, 4),
        of(DType::F32, &[0], 2, DType::I32, 4),
        of(DType::F32, &[2], 0, DType::I32, 0),
    ]
}
