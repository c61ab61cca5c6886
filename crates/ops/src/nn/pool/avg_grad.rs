//! `avg_pool_grad`: the value of each window, spread evenly over the elements that its mean was taken of, and added up
//! where windows overlap. The transpose of `avg_pool`.
//!
//! Each pixel looks at the windows over it, in order: the same sums at any number of threads.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Call, Emit, OpDef, Shape, TensorType};

use super::avg::{AVG_POOL, BLOCK, add, average, averages, made, share};
use super::{PixelRow, axes};
use crate::infer::{cost, each, inputs, joined, shape};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, with_float};
use crate::nn::window::{Pixels, WindowAxis, WindowGeometry};
use crate::rules;
use crate::simd::{self, Isa};

const NAME: &str = "avg_pool_grad";

/// `values [batch, ..., channels] -> image`; the rest as [`Attrs::Average`], which has the lengths of the image.
pub static AVG_POOL_GRAD: OpDef = OpDef {
    name: NAME,
    doc: "The value of each window spread evenly over its elements: the transpose of avg_pool.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 1),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let area = average(NAME, call.attrs).map_or(0, |(_, window)| window.area() as u64);
        let flops = each(call.inputs, 2 * area);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |(image, mut average): (TensorType, tonnage_core::window::Average)| {
            let values = TensorType::new(image.dtype, &made(&image, &average)[..]);
            average.image = image.shape[1..image.shape.rank() - 1].iter().cloned().collect();
            Sample::of(&[values], Attrs::Average(Box::new(average)))
        };
        averages().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [values] = inputs(NAME, call)?;
    rules::infer::float(call, values)?;
    let (average, window) = average(NAME, call.attrs)?;
    let lengths: Shape = window.lengths(NAME, values)?.iter().cloned().collect();
    if average.image.rank() != window.spatial {
        let what = format!("an image of lengths {}", average.image);
        return Err(bad_argument(NAME, what, "give a length for each spatial axis"));
    }
    let made: Shape = window.slide(NAME, &average.image)?.into_iter().collect();
    shape(NAME, &lengths, &made, "an image of these lengths has another number of windows")?;
    let rank = values.shape.rank();
    let shape = joined(&[&values.shape[..1], &average.image, &values.shape[rank - 1..]]);
    Ok(smallvec![TensorType { dtype: values.dtype, shape }])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut average = average(NAME, call.attrs)?.0.clone();
    average.image = Shape::scalar();
    let made = e.apply(&AVG_POOL, vec![call.grad()?], Attrs::Average(Box::new(average)))?;
    Ok(vec![crate::emit::dense(made)])
}

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
        simd::level().run(AvgPoolGradRow {
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

impl<T: Float> simd::SimdKernel for AvgPoolGradRow<'_, T> {
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
