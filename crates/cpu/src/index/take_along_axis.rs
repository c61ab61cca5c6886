//! The kernel of `take_along_axis`.

use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_core::lent::In;

use super::indices::Indices;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::{rows_at_once, strides};
use crate::strided::{self, Positions};
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`TAKE_ALONG_AXIS`](tonnage_ops::index::take_along_axis::TAKE_ALONG_AXIS).
pub static TAKE_ALONG_AXIS: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let x = &k.inputs[0];
    let size = x.layout.sizes.last().copied().unwrap_or(1);
    let indices = Indices::checked("take_along_axis", &k.inputs[1], size)?;
    let row = k.outputs[0].sizes.last().copied().unwrap_or(1);
    with_width!(x.dtype, T => take::<T>(x, &indices, k.outputs[0].slice(), row, k.workers))
}

fn take<T: Element>(
    x: &In,
    indices: &Indices,
    out: &mut [T],
    row: usize,
    workers: &dyn Workers,
) -> Result<()> {
    let (data, last) = (x.slice::<T>(), x.layout.sizes.len() - 1);
    let (outer, step) = (strided::axes(&x.layout, 0..last), x.layout.strides[last]);
    let (starts, at_once) = (Positions::of(outer), rows_at_once(row));
    for_each_chunk(workers, out, row * at_once, &|chunk, rows| {
        for (i, to) in rows.chunks_mut(row).enumerate() {
            let number = chunk * at_once + i;
            let start = starts.at(number) as isize;
            for range in strides(workers, 0..row, 1) {
                let to = &mut to[range.clone()];
                indices.each(number * row + range.start, range.len(), |j, index| {
                    to[j] = data[(start + index as isize * step) as usize];
                });
            }
        }
    })
}
