//! The kernel of `put_along_axis`.

use tonnage_core::error::Result;
use tonnage_core::lent::In;

use super::indices::Indices;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, with_sum};
use crate::parallel::{rows_at_once, strides};
use crate::strided::Positions;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`PUT_ALONG_AXIS`](tonnage_ops::index::put_along_axis::PUT_ALONG_AXIS).
pub static PUT_ALONG_AXIS: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (values, out) = (&k.inputs[1], &mut k.outputs[0]);
    let size = out.sizes.last().copied().unwrap_or(1);
    let indices = Indices::checked("put_along_axis", &k.inputs[0], size)?;
    with_sum!("put_along_axis", values.dtype, T => {
        put::<T>(values, &indices, out.slice(), size, k.workers)
    })
}

fn put<T: Number>(
    values: &In,
    indices: &Indices,
    out: &mut [T],
    n: usize,
    workers: &dyn Workers,
) -> Result<()> {
    let row = values.layout.sizes.last().copied().unwrap_or(1);
    let (data, positions, at_once) =
        (values.slice::<T>(), Positions::of(&values.layout), rows_at_once(n));
    for_each_chunk(workers, out, n * at_once, &|chunk, rows| {
        rows.fill(T::ZERO);
        for (i, to) in rows.chunks_mut(n).enumerate() {
            let first = (chunk * at_once + i) * row;
            for range in strides(workers, first..first + row, 1) {
                for number in range {
                    let to = &mut to[indices.get(number)];
                    *to = to.plus(data[positions.at(number)]);
                }
            }
        }
    })
}
