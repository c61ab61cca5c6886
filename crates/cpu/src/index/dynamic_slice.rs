//! The kernel of `dynamic_slice`.

use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::lent::In;
use tonnage_core::walk::StridedAxes;
use tonnage_ops::index::dynamic_slice::outside;

use super::indices::Indices;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::GRAIN;
use crate::strided;
use crate::workers::for_each_chunk;

/// The kernel of [`DYNAMIC_SLICE`](tonnage_ops::index::dynamic_slice::DYNAMIC_SLICE).
pub static DYNAMIC_SLICE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

/// Where the part's first element lies in a tensor whose axes have those strides; an error where the part leaves
/// the whole.
pub(super) fn offset(
    op: &'static str,
    start: &In,
    part: &[usize],
    whole: &[usize],
    stride: impl Fn(usize) -> isize,
) -> Result<isize> {
    let starts = Indices::checked(op, start, usize::MAX)?;
    let mut at = 0;
    for (axis, (len, size)) in part.iter().zip(whole).enumerate() {
        let from = starts.get(axis);
        if from.checked_add(*len).is_none_or(|end| end > *size) {
            return Err(outside(op, *len, from as i64, axis, *size));
        }
        at += from as isize * stride(axis);
    }
    Ok(at)
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let Layout { sizes, strides, offset: first } = &x.layout;
    let at = offset("dynamic_slice", &k.inputs[1], &out.sizes, sizes, |axis| strides[axis])?;
    with_width!(x.dtype, T => {
        let (sizes, out) = out.parts::<T>();
        let part = StridedAxes { sizes, strides, offset: (*first as isize + at) as usize };
        let data = x.slice::<T>();
        for_each_chunk(k.workers, out, GRAIN, &|chunk, out| {
            strided::copy(part, data, chunk * GRAIN, out);
        })?;
    });
    Ok(())
}
