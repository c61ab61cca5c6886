//! The kernel of `place`.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::layout::Slice;

use super::window;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;

/// The kernel of [`PLACE`](tonnage_ops::shape::place::PLACE).
pub static PLACE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (input, out) = (&k.inputs[0], &mut k.outputs[0]);
    let Attrs::Place { slices, .. } = k.attrs else { return Ok(()) };
    // Of known sizes by now.
    let slice = |axis: usize| slices[axis].known().unwrap_or(Slice { start: 0, len: 0, step: 1 });
    // All zero bits are zero, or false, in every dtype.
    with_width!(input.dtype, T => {
        let (sizes, out) = out.parts::<T>();
        window::put::<T>(input, &slice, sizes, 0, out, k.workers)?;
    });
    Ok(())
}
