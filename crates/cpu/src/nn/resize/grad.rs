//! The kernel of `resize_grad`. Each pixel looks at those it may be in, in order: the same sums at any number of
//! threads.

use tonnage_core::error::Result;
use tonnage_ops::nn::resize::grad::NAME;
use tonnage_ops::nn::resize::resize;
use tonnage_simd::{Isa, SimdKernel, level};

use super::forward::BLOCK;
use super::{ResizeAxis, axes};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::pool::avg::add;
use crate::nn::window::Pixels;
use crate::workers::for_each_chunk;

/// The kernel of [`RESIZE_GRAD`](tonnage_ops::nn::resize::grad::RESIZE_GRAD).
pub static RESIZE_GRAD: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let between = resize(NAME, k.attrs)?.between;
    let (values, out) = (&k.inputs[0], &mut k.outputs[0]);
    let axes = axes(between, &out.sizes, &values.layout.sizes);
    let made = Pixels::of(&values.layout);
    let row_len = axes[2].from * made.channels;
    for_each_chunk(k.workers, out.slice::<T>(), row_len, &|number, out| {
        let (rest, y) = (number / axes[1].from, number % axes[1].from);
        let (batch, z) = (rest / axes[0].from, rest % axes[0].from);
        let data = values.slice::<T>();
        level().run(ResizeGradRow { data, made: &made, axes, batch, at: [z, y], out });
    })?;
    Ok(())
}

/// One row of the image.
struct ResizeGradRow<'a, T> {
    data: &'a [T],
    made: &'a Pixels,
    axes: [ResizeAxis; 3],
    batch: usize,
    at: [usize; 2],
    out: &'a mut [T],
}

impl<T: Float> SimdKernel for ResizeGradRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ResizeGradRow { data, made, axes, batch, at: [z, y], out } = self;
        let (slabs, rows) = (axes[0].reached(z), axes[1].reached(y));
        for (x, out) in out.chunks_exact_mut(made.channels.max(1)).enumerate() {
            let columns = axes[2].reached(x);
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let mut sums = [T::Compute::ZERO; BLOCK];
                let sums = &mut sums[..out.len()];
                for slab in slabs.clone() {
                    for row in rows.clone() {
                        let share = axes[0].share(slab, z) * axes[1].share(row, y);
                        for column in columns.clone() {
                            let share = share * axes[2].share(column, x);
                            let from = (block * BLOCK) as isize * made.channel;
                            let at = made.at(batch, [slab, row, column]) + from;
                            add::<T, I>(data, at, made.channel, T::Compute::of(share), sums);
                        }
                    }
                }
                T::store(sums, out);
            }
        }
    }
}
