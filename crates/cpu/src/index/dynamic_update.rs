//! The kernel of `dynamic_update`.

use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_core::lent::Data;
use tonnage_core::walk::LayoutWalk;

use super::dynamic_slice::offset;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::GRAIN;
use crate::strided;
use crate::workers::for_each_chunk;

/// The kernel of [`DYNAMIC_UPDATE`](tonnage_ops::index::dynamic_update::DYNAMIC_UPDATE).
pub static DYNAMIC_UPDATE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_width!(k.outputs[0].dtype, T => put::<T>(k))
}

fn put<T: Element>(k: &mut Kernel) -> Result<()> {
    let [x, part, start] = k.inputs else { return Ok(()) };
    let (part_sizes, strides) = (&part.layout.sizes, &part.layout.strides);
    let (sizes, out) = k.outputs[0].parts::<T>();
    let stride = |axis: usize| sizes[axis + 1..].iter().product::<usize>() as isize;
    let first = offset("dynamic_update", start, part_sizes, sizes, stride)?;
    if let Data::Slice(_) = x.data {
        let data = x.slice::<T>();
        for_each_chunk(k.workers, out, GRAIN, &|chunk, out| {
            strided::copy(&x.layout, data, chunk * GRAIN, out);
        })?;
    }
    let data = part.slice::<T>();
    let (n, step) = match (part_sizes.last(), strides.last()) {
        (Some(n), Some(step)) => (*n, *step),
        _ => (1, 1),
    };
    if n == 0 {
        return Ok(());
    }
    let rows = part_sizes.len().saturating_sub(1);
    let axis = |i: usize| (part_sizes[i], [strides[i], stride(i)]);
    for [from, to] in LayoutWalk::new(rows, [part.layout.offset, first as usize], axis) {
        for (i, x) in out[to..to + n].iter_mut().enumerate() {
            *x = data[(from as isize + i as isize * step) as usize];
        }
    }
    Ok(())
}
