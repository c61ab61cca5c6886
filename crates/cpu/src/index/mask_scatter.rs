//! The kernel of `mask_scatter`.

use tonnage_core::error::Result;
use tonnage_ops::index::mask_scatter::wrong_rows;

use super::mask::{BooleanMask, Owned};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::strided;

/// The kernel of [`MASK_SCATTER`](tonnage_ops::index::mask_scatter::MASK_SCATTER).
pub static MASK_SCATTER: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (mask, rows) = (BooleanMask::new(&k.inputs[0]), &k.inputs[1]);
    let (count, given) = (mask.count(0, mask.len()), rows.layout.sizes[0]);
    if count != given {
        return Err(wrong_rows(count, given));
    }
    let row: usize = rows.layout.sizes[1..].iter().product();
    // All zero bits are zero in every dtype that is a number.
    with_width!(rows.dtype, T => {
        let data = rows.slice::<T>();
        let out = k.outputs[0].slice::<T>();
        mask.for_each_part(k.workers, out, row, Owned::All, &|part, out| {
            let mut next = part.before;
            for i in 0..part.len {
                let to = &mut out[i * row..(i + 1) * row];
                if mask.get(part.start + i) {
                    strided::copy(&rows.layout, data, next * row, to);
                    next += 1;
                } else {
                    to.fill(0);
                }
            }
        })?;
    });
    Ok(())
}
