//! `argsort`: where the elements of each row of the last axis stand once they are in order, as i32.
//!
//! Stable: of equal elements (0 and -0 are equal, and so are NaNs) the one with the lower index comes first, up and
//! down. NaN counts as larger than everything. Scratch is a key and an index for every element of as many rows as
//! are sorted at once.

use bytemuck::cast_slice_mut;
use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::{Bytes, DType, OpDef, TensorType, Workers};

use super::along::{leading_axes, one_output};
use super::order::{Ordered, Packed, in_order, packed_bytes, with_ordered};
use super::sort;
use crate::infer::{bad_attrs, cost, elements, inputs, rank_at_least};
use crate::parallel::{ChunkedPair, for_each_pair, strides};
use crate::strided::Positions;

/// `x [.., n] -> i32 [.., n]`; whether the largest comes first as [`Attrs::Descending`].
pub static ARGSORT: OpDef = OpDef {
    name: "argsort",
    doc: "Where the elements of each row of the last axis stand once they are in order, as i32.",
    infer,
    axes: |call| one_output(leading_axes(call.inputs[0].shape.rank(), 1, AxisOf::Mixed)),
    mem: Mem::Alloc,
    scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(20);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || sort::samples(&DType::ALL),
};

/// Whether the largest comes first.
pub(super) fn descending(call: &Call) -> Result<bool> {
    match *call.attrs {
        Attrs::Descending(descending) => Ok(descending),
        _ => Err(bad_attrs(call.op, call.attrs, "whether the largest comes first")),
    }
}

/// Refuses rows whose indices are no i32.
pub(super) fn counts_in_i32(op: &'static str, n: usize) -> Result<()> {
    match i32::try_from(n) {
        Ok(_) => Ok(()),
        Err(_) => {
            let what = format!("the last axis has {n} elements, and indices are i32");
            Err(bad_argument(op, what, "cut it into parts of less than 2^31"))
        }
    }
}

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("argsort", call)?;
    descending(call)?;
    rank_at_least("argsort", x, 1, "it sorts along the last axis")?;
    counts_in_i32("argsort", x.shape.last().and_then(|d| d.known()).unwrap_or(0))?;
    Ok(smallvec![TensorType::new(DType::I32, &x.shape)])
}

/// Rows that are sorted at once: one a thread.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(sizes) = call.inputs.first().and_then(|ty| ty.shape.most()) else {
        return Bytes::ZERO;
    };
    let n = sizes.last().copied().unwrap_or(0);
    let rows: usize = sizes[..sizes.len().saturating_sub(1)].iter().product();
    Bytes::of(rows.min(threads.max(1)) * n * packed_bytes(call.inputs[0].dtype))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Descending(descending) = *k.attrs else { return Ok(()) };
    let x = &k.inputs[0];
    let n = x.layout.sizes.last().copied().unwrap_or(0);
    counts_in_i32("argsort", n)?;
    let out = k.outputs[0].slice::<i32>();
    with_ordered!(x.dtype, T, P => {
        argsort::<T, P>(x, n, descending, out, cast_slice_mut(k.scratch), k.workers)
    })
}

fn argsort<T: Ordered, P: Packed>(
    x: &In,
    n: usize,
    descending: bool,
    out: &mut [i32],
    scratch: &mut [P],
    workers: &dyn Workers,
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let together = (scratch.len() / n).max(1);
    for (group, rows) in out.chunks_mut(together * n).enumerate() {
        let room = &mut scratch[..rows.len()];
        let pair = ChunkedPair { a: rows, chunk_a: n, b: room, chunk_b: n };
        for_each_pair(workers, pair, &|i, row, room| {
            if sorted::<T, P>(x, (group * together + i) * n, descending, room, workers).is_err() {
                return; // as all other rows do
            }
            for (to, packed) in row.iter_mut().zip(room) {
                *to = packed.index() as i32;
            }
        })?;
    }
    Ok(())
}

/// The elements from `first` on, packed and in order.
pub(super) fn sorted<T: Ordered, P: Packed>(
    x: &In,
    first: usize,
    descending: bool,
    room: &mut [P],
    workers: &dyn Workers,
) -> Result<()> {
    let (data, positions) = (x.slice::<T>(), Positions::of(&x.layout));
    // Inverted within its own width, so that the index below still counts up.
    let most: u64 = u64::MAX >> (64 - 8 * size_of::<T>());
    for range in strides(workers, 0..room.len(), 1) {
        for i in range {
            let key: u64 = data[positions.at(first + i)].level_key().into();
            room[i] = P::pack(if descending { most - key } else { key }, i);
        }
    }
    in_order(room, workers)
}
