//! `first_of`: for each of some indices, where it first occurs among them.
//!
//! What rows of a gradient that have the same index are added up by: each goes to the first of its kind.
//! Positions count in logical order. The time is that of a sort, the workspace a number an index.

use bytemuck::cast_slice_mut;
use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, Values,
};
use tonnage_core::{Bytes, Call, DType, OpDef, TensorType};

use super::indices::Indices;
use super::order::{Packed, in_order};
use crate::infer::{cost, elements, inputs, integer, no_attrs};

const WHY: &str = "an index has no gradient";

/// `indices -> ` the position of the first that is equal, in their shape.
pub static FIRST_OF: OpDef = OpDef {
    name: "first_of",
    doc: "For each index, where it first occurs among all of them.",
    infer,
    axes: |call| AxisMap {
        outputs: vec![vec![AxisOf::Mixed; call.inputs[0].shape.rank()]],
        summed: vec![],
    },
    mem: Mem::Alloc,
    scratch: |call, _| {
        let count = call.inputs.first().map_or(0, elements);
        Bytes::new(count.saturating_mul(size_of::<u64>() as u64))
    },
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
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [indices] = inputs("first_of", call)?;
    no_attrs("first_of", call)?;
    integer("first_of", indices)?;
    Ok(smallvec![TensorType { dtype: DType::I64, shape: indices.shape.clone() }])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let indices = Indices::checked("first_of", &k.inputs[0], isize::MAX as usize)?;
    let count = indices.count();
    let order: &mut [u64] = &mut cast_slice_mut(k.scratch)[..count];
    let out = k.outputs[0].slice::<i64>();
    // An index and its position are one number, save for tables of 2^32 rows.
    if u32::try_from(count).is_ok() && indices.all_below(u32::MAX as usize) {
        for (at, to) in order.iter_mut().enumerate() {
            *to = u64::pack(indices.get(at) as u64, at);
        }
        in_order(order, k.workers)?;
        first_positions(order.iter().map(|both| (both.packed_key(), both.index())), out);
    } else {
        (0..).zip(order.iter_mut()).for_each(|(at, place)| *place = at);
        order.sort_unstable_by_key(|at| (indices.get(*at as usize), *at));
        first_positions(
            order.iter().map(|at| (indices.get(*at as usize) as u64, *at as usize)),
            out,
        );
    }
    Ok(())
}

/// From indices and their positions, in order: the first position of each index at all of them.
fn first_positions(ordered: impl Iterator<Item = (u64, usize)>, out: &mut [i64]) {
    let mut first = (0, 0);
    for (i, (index, at)) in ordered.enumerate() {
        if i == 0 || index != first.0 {
            first = (index, at);
        }
        out[at] = first.1 as i64;
    }
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
