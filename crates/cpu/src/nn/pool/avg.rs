//! The kernel of `avg_pool`: means of 16-bit floats are computed in f32 and rounded once.

use tonnage_core::error::Result;
use tonnage_ops::nn::pool::avg::{NAME, average};
use tonnage_ops::nn::window::WindowGeometry;
use tonnage_simd::{Isa, SimdKernel, level};

use super::PixelRow;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::window::Pixels;
use crate::workers::for_each_chunk;

/// The kernel of [`AVG_POOL`](tonnage_ops::nn::pool::avg::AVG_POOL).
pub static AVG_POOL: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

/// Over how many elements a window's mean is, as a factor; 0 for a window that lies in padding alone.
pub(super) fn share<C: Wide>(window: &WindowGeometry, counts_padding: bool, inside: usize) -> C {
    match (inside, counts_padding) {
        (0, _) => C::ZERO,
        (_, true) => C::ONE / C::of(window.area() as f64),
        (inside, false) => C::ONE / C::of(inside as f64),
    }
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let (average, window) = average(NAME, k.attrs)?;
    let (image, out) = (&k.inputs[0], &mut k.outputs[0]);
    let ((sizes, out), pixels) = (out.parts::<T>(), Pixels::of(&image.layout));
    let row_len = sizes[sizes.len() - 2] * pixels.channels;
    for_each_chunk(k.workers, out, row_len, &|number, out| {
        level().run(AvgPoolRow {
            data: image.slice::<T>(),
            pixels: &pixels,
            window: &window,
            counts_padding: average.counts_padding,
            row: PixelRow::of(number, sizes),
            out,
        });
    })?;
    Ok(())
}

/// Channels whose sums are kept close at hand.
pub(super) const BLOCK: usize = 64;

/// Adds some channels, each times a factor, to sums.
#[inline(always)]
pub(in crate::nn) fn add<T: Float, I: Isa>(
    data: &[T],
    at: isize,
    step: isize,
    factor: T::Compute,
    sums: &mut [T::Compute],
) {
    if step == 1 {
        let from = &data[at as usize..][..sums.len()];
        for (sum, x) in sums.iter_mut().zip(from) {
            *sum = x.read().fma::<I>(factor, *sum);
        }
        return;
    }
    for (c, sum) in sums.iter_mut().enumerate() {
        *sum = data[(at + c as isize * step) as usize].read().fma::<I>(factor, *sum);
    }
}

/// One row of windows, all channels.
struct AvgPoolRow<'a, T> {
    data: &'a [T],
    pixels: &'a Pixels,
    window: &'a WindowGeometry,
    counts_padding: bool,
    row: PixelRow,
    out: &'a mut [T],
}

impl<T: Float> SimdKernel for AvgPoolRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ([zs, ys, xs], pixels) = (self.window.axes, self.pixels);
        let (lengths, channels) = (pixels.lengths, pixels.channels);
        let PixelRow { batch, at: [z, y] } = self.row;
        let (slabs, rows) = (zs.inside(z, lengths[0]), ys.inside(y, lengths[1]));
        for (column, out) in self.out.chunks_exact_mut(channels.max(1)).enumerate() {
            let columns = xs.inside(column, lengths[2]);
            let inside = slabs.len() * rows.len() * columns.len();
            let share = share::<T::Compute>(self.window, self.counts_padding, inside);
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let mut sums = [T::Compute::ZERO; BLOCK];
                for i in slabs.clone() {
                    for j in rows.clone() {
                        for l in columns.clone() {
                            let place = [zs.place(z, i), ys.place(y, j), xs.place(column, l)];
                            let from = (block * BLOCK) as isize * pixels.channel;
                            let at = pixels.at(batch, place) + from;
                            let (step, sums) = (pixels.channel, &mut sums[..out.len()]);
                            add::<T, I>(self.data, at, step, T::Compute::ONE, sums);
                        }
                    }
                }
                sums.iter_mut().for_each(|sum| *sum = *sum * share);
                T::store(&sums[..out.len()], out);
            }
        }
    }
}
