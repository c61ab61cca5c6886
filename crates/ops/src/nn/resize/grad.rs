//! `resize_grad`: what each pixel of a resized image was made of, given back to it. The transpose of `resize`.
//!
//! Each pixel looks at those it may be in, in order: the same sums at any number of threads.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch};
use tonnage_core::window::Resize;
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Call, Emit, OpDef, Shape, TensorType};

use super::forward::{BLOCK, RESIZE, image_axes};
use super::{ResizeAxis, axes, cases, resize, sizes, with_lengths};
use crate::infer::{cost, each, inputs, shape};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::pool::avg::add;
use crate::nn::window::Pixels;
use crate::simd::{self, Isa};

const NAME: &str = "resize_grad";

/// `values [batch, ..., channels] -> image`; lengths of both and the manner as [`Attrs::Resize`].
pub static RESIZE_GRAD: OpDef = OpDef {
    name: NAME,
    doc: "What each pixel of a resized image was made of, given back: the transpose of resize.",
    infer,
    axes: image_axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(call.inputs, 8), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |(image, mut resize): (TensorType, Resize)| {
            let made = with_lengths(NAME, &image, &resize.to).unwrap_or_else(|_| image.clone());
            let of = sizes(&image);
            resize.image = Shape::from(&of[1..of.len() - 1]);
            Sample::of(&[made], Attrs::Resize(Box::new(resize)))
        };
        cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [values] = inputs(NAME, call)?;
    let resize = resize(NAME, call.attrs)?;
    let image = with_lengths(NAME, values, &resize.image)?;
    let made = with_lengths(NAME, &image, &resize.to)?;
    shape(NAME, &values.shape, &made.shape, "pass values of an image of these lengths")?;
    Ok(smallvec![image])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut resize = resize(NAME, call.attrs)?.clone();
    resize.image = Shape::scalar();
    let made = e.apply(&RESIZE, vec![call.grad()?], Attrs::Resize(Box::new(resize)))?;
    Ok(vec![crate::emit::dense(made)])
}

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
        simd::level().run(ResizeGradRow { data, made: &made, axes, batch, at: [z, y], out });
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

impl<T: Float> simd::SimdKernel for ResizeGradRow<'_, T> {
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
