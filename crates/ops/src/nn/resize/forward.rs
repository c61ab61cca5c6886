//! `resize`: an image of other lengths.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch,
};
use tonnage_core::window::Resize;
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Call, Emit, OpDef, TensorType};

use super::grad::RESIZE_GRAD;
use super::{ResizeAxis, axes, cases, resize, with_lengths};
use crate::infer::{along, cost, each, inputs};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::pool::avg::add;
use crate::nn::window::Pixels;
use crate::simd::{self, Isa};

const NAME: &str = "resize";

/// `image [batch, ..., channels] -> [batch, ..., channels]`; lengths and manner as [`Attrs::Resize`].
pub static RESIZE: OpDef = OpDef {
    name: NAME,
    doc: "An image of other lengths: the nearest pixel, or straight lines between pixels.",
    infer,
    axes: image_axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 8), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |(image, resize): (TensorType, Resize)| {
            Sample::of(&[image], Attrs::Resize(Box::new(resize)))
        };
        cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [image] = inputs(NAME, call)?;
    let resize = resize(NAME, call.attrs)?;
    if resize.image.rank() != 0 {
        let what = format!("lengths of {} for an image that is given", resize.image);
        return Err(bad_argument(NAME, what, "leave them out"));
    }
    Ok(smallvec![with_lengths(NAME, image, &resize.to)?])
}

/// Batch and channels run along those of the input.
pub(super) fn image_axes(call: &Call) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let mut axes = vec![AxisOf::Mixed; rank];
    axes[0] = along(&[(0, 0)]);
    axes[rank - 1] = along(&[(0, rank - 1)]);
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut resize = resize(NAME, call.attrs)?.clone();
    let of = &call.inputs[0].shape;
    resize.image = of[1..of.rank() - 1].iter().cloned().collect();
    let made = e.apply(&RESIZE_GRAD, vec![call.grad()?], Attrs::Resize(Box::new(resize)))?;
    Ok(vec![crate::emit::dense(made)])
}

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
        simd::level().run(ResizeRow { data, pixels: &pixels, axes, batch, at: [z, y], out });
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

impl<T: Float> simd::SimdKernel for ResizeRow<'_, T> {
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
