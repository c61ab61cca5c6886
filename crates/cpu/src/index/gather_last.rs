//! The kernel of `gather_last`: scratch is a bit for every row of the table (is it taken?) and one for every index (did
//! it take it?).

use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::{Bytes, Call, Element};
use tonnage_ops::index::rows::axis;
use tonnage_ops::infer::elements;

use super::indices::Indices;
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_width;
use crate::parallel::rows_at_once;
use crate::strided::{self, Positions};
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`GATHER_LAST`](tonnage_ops::index::gather_last::GATHER_LAST).
pub static GATHER_LAST: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

fn scratch(call: &Call, _: usize) -> Bytes {
    let [table, indices] = call.inputs else { return Bytes::ZERO };
    let at = axis("gather_last", call.attrs).unwrap_or(0);
    let rows = table.shape.get(at).and_then(|d| d.most()).unwrap_or(0) as u64;
    Bytes::new(rows.div_ceil(8) + elements(indices).div_ceil(8))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let axis = axis("gather_last", k.attrs)?;
    let table = &k.inputs[0];
    let size = table.layout.sizes[axis];
    let indices = Indices::checked("gather_last", &k.inputs[1], size)?;
    let (taken, last) = k.scratch.split_at_mut(size.div_ceil(8));
    taken.fill(0);
    last.fill(0);
    for i in (0..indices.count()).rev() {
        let index = indices.get(i);
        if !bit(taken, index) {
            taken[index / 8] |= 1 << (index % 8);
            last[i / 8] |= 1 << (i % 8);
        }
    }
    let pick = Pick { table, axis, indices: &indices, last };
    // All zero bits are zero in every dtype that is a number.
    with_width!(table.dtype, T => pick.fill::<T>(k.outputs[0].slice(), 0, k.workers))
}

fn bit(bits: &[u8], i: usize) -> bool {
    bits[i / 8] >> (i % 8) & 1 == 1
}

struct Pick<'a> {
    table: &'a In<'a>,
    axis: usize,
    indices: &'a Indices<'a>,
    /// Which indices are the last of their kind.
    last: &'a [u8],
}

impl Pick<'_> {
    fn fill<T: Element>(&self, out: &mut [T], zero: T, workers: &dyn Workers) -> Result<()> {
        let (layout, data) = (&self.table.layout, self.table.slice::<T>());
        let outer = strided::axes(layout, 0..self.axis);
        let inner = strided::axes(layout, self.axis + 1..layout.sizes.len());
        let (blocks, step) = (Positions::of(outer), layout.strides[self.axis]);
        let (row, count) = (inner.count(), self.indices.count());
        let at_once = rows_at_once(row);
        for_each_chunk(workers, out, row * at_once, &|chunk, rows| {
            let mut from = inner;
            for (i, to) in rows.chunks_mut(row).enumerate() {
                let (block, i) = ((chunk * at_once + i) / count, (chunk * at_once + i) % count);
                if !bit(self.last, i) {
                    to.fill(zero);
                    continue;
                }
                let index = self.indices.get(i) as isize;
                from.offset = (blocks.at(block) as isize + index * step) as usize;
                strided::copy(from, data, 0, to);
            }
        })
    }
}
