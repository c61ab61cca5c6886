//! The kernel of `nonzero`.

use tonnage_core::error::Result;

use super::mask::{BooleanMask, Owned};
use crate::kernel::{Kernel, KernelDef, no_scratch};

/// The kernel of [`NONZERO`](tonnage_ops::index::nonzero::NONZERO).
pub static NONZERO: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let mask = BooleanMask::new(&k.inputs[0]);
    let sizes = &k.inputs[0].layout.sizes;
    let rank = sizes.len();
    let out = &mut k.outputs[0];
    out.sizes[0] = mask.count(0, mask.len());
    let rows = out.sizes[0] * rank;
    let out = &mut out.slice::<i64>()[..rows];
    mask.for_each_part(k.workers, out, rank, Owned::Selected, &|part, rows| {
        let mut rows = rows.chunks_mut(rank);
        for number in (part.start..part.start + part.len).filter(|i| mask.get(*i)) {
            let Some(row) = rows.next() else { return };
            let mut rest = number;
            for (to, size) in row.iter_mut().zip(sizes).rev() {
                *to = (rest % size) as i64;
                rest /= size;
            }
        }
    })?;
    Ok(())
}
