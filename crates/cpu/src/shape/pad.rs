//! The kernel of `pad`.

use tonnage_core::attrs::{Attrs, PadMode};
use tonnage_core::error::Result;
use tonnage_core::layout::Slice;
use tonnage_core::lent::In;
use tonnage_core::{Element, FromScalar, with_element};

use super::window;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::{rows_at_once, strides};
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`PAD`](tonnage_ops::shape::pad::PAD).
pub static PAD: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Pad { widths, padding } = k.attrs else { return Ok(()) };
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    match padding {
        PadMode::Constant(value) => {
            let centred = |i: usize| Slice { start: widths[i][0], len: x.layout.sizes[i], step: 1 };
            with_element!(x.dtype, T => {
                let (sizes, out) = out.parts::<T>();
                window::put::<T>(x, &centred, sizes, T::from_scalar(*value), out, k.workers)?;
            });
        }
        mirror => with_width!(x.dtype, T => {
            let (sizes, out) = out.parts::<T>();
            reflect::<T>(x, widths, *mirror, sizes, out, k.workers)?;
        }),
    }
    Ok(())
}

/// Which element of `n` a mirror shows at a position of the padded axis.
fn mirrored(at: usize, before: usize, n: usize, padding: PadMode) -> usize {
    // Beside the outermost element, or on it.
    let beside = matches!(padding, PadMode::Symmetric) as usize;
    match at {
        at if at < before => before - at - beside,
        at if at < before + n => at - before,
        at => 2 * n - 2 + beside - (at - before),
    }
}

fn reflect<T: Element>(
    x: &In,
    widths: &[[usize; 2]],
    padding: PadMode,
    sizes: &[usize],
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let Some(last) = sizes.len().checked_sub(1) else {
        strided::copy(&x.layout, x.slice::<T>(), 0, out);
        return Ok(());
    };
    let (layout, data, row) = (&x.layout, x.slice::<T>(), sizes[last]);
    let at_once = rows_at_once(row);
    for_each_chunk(workers, out, (row * at_once).max(1), &|chunk, rows| {
        for (i, to) in rows.chunks_mut(row).enumerate() {
            let (mut start, mut number) = (layout.offset as isize, chunk * at_once + i);
            for axis in (0..last).rev() {
                let at = number % sizes[axis];
                number /= sizes[axis];
                let at = mirrored(at, widths[axis][0], layout.sizes[axis], padding);
                start += at as isize * layout.strides[axis];
            }
            let (n, step) = (layout.sizes[last], layout.strides[last]);
            for range in strides(workers, 0..row, 1) {
                for (at, to) in range.clone().zip(&mut to[range]) {
                    let at = mirrored(at, widths[last][0], n, padding);
                    *to = data[(start + at as isize * step) as usize];
                }
            }
        }
    })
}
