//! The kernel of `resize`.

use tonnage_core::error::Result;
use tonnage_ops::nn::resize::forward::NAME;
use tonnage_ops::nn::resize::resize;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{ResizeAxis, axes};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::pool::avg::add;
use crate::nn::window::Pixels;
use crate::workers::for_each_chunk;

/// The kernel of [`RESIZE`](tonnage_ops::nn::resize::forward::RESIZE).
pub static RESIZE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let between = resize(NAME, k.attrs)?.between;
    let (image, out) = (&k.inputs[0], &mut k.outputs[0]);
    let axes = axes(between, &image.layout.sizes, &out.sizes);
    let pixels = Pixels::of(&image.layout);
    let row_len = axes[2].to * pixels.channels;
    for_each_chunk(k.workers, out.slice::<T>(), row_len, &|number, out| {
        let (rest, y) = (number / axes[1].to, number % axes[1].to);
        let (batch, z) = (rest / axes[0].to, rest % axes[0].to);
        let data = image.slice::<T>();
        level().run(ResizeRow { data, pixels: &pixels, axes, batch, at: [z, y], out });
    })?;
    Ok(())
}

/// One row of the image that is made.
struct ResizeRow<'a, T> {
    data: &'a [T],
    pixels: &'a Pixels,
    axes: [ResizeAxis; 3],
    batch: usize,
    at: [usize; 2],
    out: &'a mut [T],
}

/// Channels that are kept close at hand.
pub(super) const BLOCK: usize = 64;

impl<T: Float> SimdKernel for ResizeRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ResizeRow { data, pixels, axes, batch, at, out } = self;
        let (slab, row) = (axes[0].place(at[0]), axes[1].place(at[1]));
        for (x, out) in out.chunks_exact_mut(pixels.channels.max(1)).enumerate() {
            let column = axes[2].place(x);
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let mut sums = [T::Compute::ZERO; BLOCK];
                let sums = &mut sums[..out.len()];
                for (z, of_z) in corners(slab) {
                    for (y, of_y) in corners(row) {
                        for (x, of_x) in corners(column) {
                            let share = of_z * of_y * of_x;
                            if share == 0.0 {
                                continue;
                            }
                            let from = (block * BLOCK) as isize * pixels.channel;
                            let at = pixels.at(batch, [z, y, x]) + from;
                            add::<T, I>(data, at, pixels.channel, T::Compute::of(share), sums);
                        }
                    }
                }
                T::store(sums, out);
            }
        }
    }
}

/// The two pixels of a place, and how much there is of each.
#[inline(always)]
fn corners((low, high, share): (usize, usize, f64)) -> [(usize, f64); 2] {
    [(low, 1.0 - share), (high, share)]
}
