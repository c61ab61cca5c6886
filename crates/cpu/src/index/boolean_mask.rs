//! The kernel of `boolean_mask`.

use tonnage_core::Attrs;
use tonnage_core::error::Result;
use tonnage_ops::index::boolean_mask::wrong_rows;

use super::mask::{BooleanMask, Owned};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::strided::{self, Positions};

/// The kernel of [`BOOLEAN_MASK`](tonnage_ops::index::boolean_mask::BOOLEAN_MASK).
pub static BOOLEAN_MASK: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (x, mask) = (&k.inputs[0], BooleanMask::new(&k.inputs[1]));
    let out = &mut k.outputs[0];
    let (count, room) = (mask.count(0, mask.len()), out.sizes[0]);
    // Without a shape there is room for all rows.
    if count > room || (count < room && *k.attrs != Attrs::None) {
        return Err(wrong_rows(count, room));
    }
    out.sizes[0] = count;
    let row: usize = out.sizes[1..].iter().product();
    with_width!(x.dtype, T => {
        let data = x.slice::<T>();
        let out = &mut out.slice::<T>()[..count * row];
        let in_order = Positions::of(&x.layout).run(x.layout.count()).filter(|_| row == 1);
        mask.for_each_part(k.workers, out, row, Owned::Selected, &|part, rows| {
            let mut done = 0;
            // Single elements: each is written, and the next one over it where it was not selected.
            // A branch on that would be mispredicted.
            if let (Some(run), Some(mask)) = (&in_order, mask.run(part.start, part.len)) {
                for (x, taken) in data[run.start + part.start..][..part.len].iter().zip(mask) {
                    let Some(to) = rows.get_mut(done) else { break };
                    *to = *x;
                    done += taken.get() as usize;
                }
                return;
            }
            for i in (part.start..part.start + part.len).filter(|i| mask.get(*i)) {
                strided::copy(&x.layout, data, i * row, &mut rows[done..done + row]);
                done += row;
            }
        })?;
    });
    Ok(())
}
