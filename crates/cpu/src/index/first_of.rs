//! The kernel of `first_of`: the time is that of a sort, the workspace a number an index.

use bytemuck::cast_slice_mut;
use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_ops::infer::elements;

use super::indices::Indices;
use super::order::{Packed, in_order};
use crate::kernel::{Kernel, KernelDef};

/// The kernel of [`FIRST_OF`](tonnage_ops::index::first_of::FIRST_OF).
pub static FIRST_OF: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, _| {
        let count = call.inputs.first().map_or(0, elements);
        Bytes::new(count.saturating_mul(size_of::<u64>() as u64))
    },
    has_epilogue: false,
    streaming: None,
};

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
