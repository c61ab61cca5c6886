//! The kernel of `gather`.

use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::lent::{Data, In};
use tonnage_core::{Call, Element};
use tonnage_ops::index::gather::infer;
use tonnage_ops::index::rows::axis;

use super::indices::Indices;
use super::rows::{AHEAD, ask_for};
use crate::kernel::{Kernel, KernelDef, Streaming, no_scratch};
use crate::number::with_width;
use crate::parallel::rows_at_once;
use crate::strided::{self, Positions};
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`GATHER`](tonnage_ops::index::gather::GATHER).
pub static GATHER: KernelDef = KernelDef {
    run: kernel,
    scratch: no_scratch,
    has_epilogue: false,
    streaming: Some(Streaming { reads, staging: |call, _, threads| no_scratch(call, threads) }),
};

/// What takes less is brought into memory.
const SMALL: usize = 1 << 18;

/// Rows of a table that lies outside of memory are read where they are wanted, where each is a run.
fn reads(call: &Call, input: usize, layout: &Layout) -> Option<usize> {
    let axis = axis("gather", call.attrs).ok().filter(|_| input == 0)?;
    let inner = strided::axes(layout, axis + 1..layout.sizes.len());
    let small = layout.count().saturating_mul(call.inputs[0].dtype.size()) <= SMALL;
    let made = infer(call).ok()?.pop()?.shape.most()?;
    (!small && inner.is_contiguous()).then(|| made.iter().product())
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let axis = axis("gather", k.attrs)?;
    let table = &k.inputs[0];
    let indices = Indices::checked("gather", &k.inputs[1], table.layout.sizes[axis])?;
    with_width!(table.dtype, T => gather::<T>(table, axis, &indices, k.outputs[0].slice(), k.workers))
}

fn gather<T: Element>(
    table: &In,
    axis: usize,
    indices: &Indices,
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let (layout, data) = (&table.layout, table.slice::<T>());
    let outer = strided::axes(layout, 0..axis);
    let inner = strided::axes(layout, axis + 1..layout.sizes.len());
    let (row, blocks, step) = (inner.count(), Positions::of(outer), layout.strides[axis]);
    let (count, at_once) = (indices.count(), rows_at_once(inner.count()));
    let at = |number: usize| {
        let index = indices.get(number % count) as isize;
        (blocks.at(number / count) as isize + index * step) as usize
    };
    let in_runs = inner.is_contiguous();
    let stored = match table.data {
        Data::Stored(elements) => elements.mapped(),
        _ => None,
    };
    for_each_chunk(workers, out, row * at_once, &|chunk, rows| {
        let first = chunk * at_once;
        if let (Data::Stored(elements), None) = (table.data, stored) {
            for (number, to) in (first..).zip(rows.chunks_mut(row)) {
                elements.read(at(number) as u64, bytemuck::cast_slice_mut(to));
            }
            return;
        }
        if row == 1 {
            // Single elements, a run of indices at a time.
            let (mut number, mut rest) = (first, rows);
            while !rest.is_empty() {
                let here = (count - number % count).min(rest.len());
                let (now, later) = rest.split_at_mut(here);
                let base = blocks.at(number / count) as isize;
                indices.each(number % count, here, |i, index| {
                    now[i] = data[(base + index as isize * step) as usize];
                });
                (number, rest) = (number + here, later);
            }
            return;
        }
        if in_runs {
            let last = first + rows.len() / row;
            for (number, to) in (first..).zip(rows.chunks_mut(row)) {
                if number + AHEAD < last {
                    ask_for(data, at(number + AHEAD), row);
                }
                to.copy_from_slice(&data[at(number)..][..row]);
            }
            return;
        }
        let mut from = inner;
        for (number, to) in (first..).zip(rows.chunks_mut(row)) {
            from.offset = at(number);
            strided::copy(from, data, 0, to);
        }
    })
}
