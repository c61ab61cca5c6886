//! The kernel of `avg_pool_grad`. Each pixel looks at the windows over it, in order: the same sums at any number of
//! threads.

use tonnage_core::error::Result;
use tonnage_ops::nn::pool::avg::average;
use tonnage_ops::nn::pool::avg_grad::NAME;
use tonnage_ops::nn::window::{WindowAxis, WindowGeometry};
use tonnage_simd::{Isa, SimdKernel, level};

use super::PixelRow;
use super::avg::{BLOCK, add, share};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, with_float};
use crate::nn::window::Pixels;
use crate::workers::for_each_chunk;

/// The kernel of [`AVG_POOL_GRAD`](tonnage_ops::nn::pool::avg_grad::AVG_POOL_GRAD).
pub static AVG_POOL_GRAD: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let (average, window) = average(NAME, k.attrs)?;
    let (values, out) = (&k.inputs[0], &mut k.outputs[0]);
    let ((sizes, out), made) = (out.parts::<T>(), Pixels::of(&values.layout));
    let mut lengths = [1; 3];
    lengths[3 - window.spatial..].copy_from_slice(&sizes[1..sizes.len() - 1]);
    for_each_chunk(k.workers, out, lengths[2] * made.channels, &|number, out| {
        level().run(AvgPoolGradRow {
            data: values.slice::<T>(),
            made: &made,
            lengths,
            window: &window,
            counts_padding: average.counts_padding,
            row: PixelRow::of(number, sizes),
            out,
        });
    })?;
    Ok(())
}

/// The windows over one row of the image, all channels.
struct AvgPoolGradRow<'a, T> {
    data: &'a [T],
    made: &'a Pixels,
    /// Spatial lengths of the image.
    lengths: [usize; 3],
    window: &'a WindowGeometry,
    counts_padding: bool,
    row: PixelRow,
    out: &'a mut [T],
}

/// The windows over a position, from the first on, and how many taps of each lie on the axis.
#[inline(always)]
fn over(
    axis: WindowAxis,
    at: usize,
    len: usize,
    count: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let windows = (0..axis.size).rev().filter_map(move |tap| axis.window_at(at, tap, count));
    windows.map(move |window| (window, axis.inside(window, len).len()))
}

impl<T: Float> SimdKernel for AvgPoolGradRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ([zs, ys, xs], made, lengths) = (self.window.axes, self.made, self.lengths);
        let PixelRow { batch, at: [z, y] } = self.row;
        for (x, out) in self.out.chunks_exact_mut(made.channels.max(1)).enumerate() {
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let mut sums = [T::Compute::ZERO; BLOCK];
                for (slab, deep) in over(zs, z, lengths[0], made.lengths[0]) {
                    for (row, high) in over(ys, y, lengths[1], made.lengths[1]) {
                        for (column, wide) in over(xs, x, lengths[2], made.lengths[2]) {
                            let inside = deep * high * wide;
                            let share = share(self.window, self.counts_padding, inside);
                            let from = (block * BLOCK) as isize * made.channel;
                            let at = made.at(batch, [slab, row, column]) + from;
                            let sums = &mut sums[..out.len()];
                            add::<T, I>(self.data, at, made.channel, share, sums);
                        }
                    }
                }
                T::store(&sums[..out.len()], out);
            }
        }
    }
}
