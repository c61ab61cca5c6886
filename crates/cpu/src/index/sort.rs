//! The kernel of `sort`: the elements are sorted as whole numbers in the output itself, without scratch.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::Data;

use super::order::{Ordered, in_order, with_ordered};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::parallel::{rows_at_once, strides};
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`SORT`](tonnage_ops::index::sort::SORT).
pub static SORT: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Descending(descending) = *k.attrs else { return Ok(()) };
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let n = out.sizes.last().copied().unwrap_or(0);
    with_ordered!(x.dtype, T, P => {
        // Rows are sorted as keys, whatever else would be packed beside them.
        let _: Option<P> = None;
        let at_once = rows_at_once(16 * n);
        for_each_chunk(k.workers, out.slice::<T>(), (n * at_once).max(1), &|chunk, rows| {
            if let Data::Slice(_) = x.data {
                strided::copy(&x.layout, x.slice::<T>(), chunk * at_once * n, rows);
            }
            for row in rows.chunks_mut(n) {
                if sort_row::<T>(row, descending, k.workers).is_err() {
                    return; // as all other rows do
                }
            }
        })?;
    });
    Ok(())
}

fn sort_row<T: Ordered>(row: &mut [T], descending: bool, workers: &dyn Workers) -> Result<()> {
    for range in strides(workers, 0..row.len(), 1) {
        row[range].iter_mut().for_each(|x| *x = bytemuck::cast(x.key()));
    }
    let keys: &mut [T::Key] = bytemuck::cast_slice_mut(row);
    in_order(keys, workers)?;
    if descending {
        keys.reverse();
    }
    for range in strides(workers, 0..row.len(), 1) {
        row[range].iter_mut().for_each(|x| *x = T::of(bytemuck::cast(*x)));
    }
    Ok(())
}
