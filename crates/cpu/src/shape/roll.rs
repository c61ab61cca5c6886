//! The kernel of `roll`.

use tonnage_core::Element;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::In;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::GRAIN;
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`ROLL`](tonnage_ops::shape::roll::ROLL).
pub static ROLL: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Roll { axis, shift } = *k.attrs else { return Ok(()) };
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let n = out.sizes[axis];
    if n > 0 {
        let inner: usize = out.sizes[axis + 1..].iter().product();
        let moved = shift.rem_euclid(n as i64) as usize * inner;
        with_width!(x.dtype, T => roll::<T>(x, moved, n * inner, out.slice(), k.workers))?;
    }
    Ok(())
}

/// Each row of `row` elements moved by `moved` of them.
fn roll<T: Element>(
    x: &In,
    moved: usize,
    row: usize,
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let data = x.slice::<T>();
    for_each_chunk(workers, out, GRAIN, &|chunk, out| {
        let (mut done, first) = (0, chunk * GRAIN);
        while done < out.len() {
            let (start, at) = ((first + done) / row * row, (first + done) % row);
            // Up to where the row starts over, and up to its end.
            let (from, end) =
                if at < moved { (at + row - moved, moved) } else { (at - moved, row) };
            let count = (end - at).min(out.len() - done);
            strided::copy(&x.layout, data, start + from, &mut out[done..done + count]);
            done += count;
        }
    })
}
