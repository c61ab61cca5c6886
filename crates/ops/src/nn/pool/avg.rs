//! `avg_pool`: the mean of each window of an image, channel by channel.
//!
//! Padding is left out of the mean, which is then over fewer elements at the edges, unless it is told to count as
//! zeros. A window that lies in padding alone gives 0. Means of 16-bit floats are computed in f32 and rounded once.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch};
use tonnage_core::window::Average;
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Call, Emit, OpDef, Shape, Sizes, TensorType};

use super::avg_grad::AVG_POOL_GRAD;
use super::{PixelRow, axes, cases, slid};
use crate::infer::{bad_attrs, cost, each, inputs};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::window::{Pixels, WindowGeometry};
use crate::rules;
use crate::simd::{self, Isa};

const NAME: &str = "avg_pool";

/// `image [batch, ..., channels] -> means`; the rest as [`Attrs::Average`].
pub static AVG_POOL: OpDef = OpDef {
    name: NAME,
    doc: "The mean of each window of an image, channel by channel.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 1),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let area = average(NAME, call.attrs).map_or(0, |(_, window)| window.area() as u64);
        let flops = each(&made, area);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |(image, average)| Sample::of(&[image], Attrs::Average(Box::new(average)));
        averages().into_iter().map(sample).collect()
    },
};

/// The attributes, checked.
pub(super) fn average<'a>(
    op: &'static str,
    attrs: &'a Attrs,
) -> Result<(&'a Average, WindowGeometry)> {
    let Attrs::Average(average) = attrs else { return Err(bad_attrs(op, attrs, "an average")) };
    Ok((average, super::checked(op, &average.window)?))
}

fn infer(call: &Call) -> Result<Types> {
    let [image] = inputs(NAME, call)?;
    rules::infer::float(call, image)?;
    let (average, window) = average(NAME, call.attrs)?;
    if average.image.rank() != 0 {
        let what = format!("lengths of {} for an image that is given", average.image);
        return Err(bad_argument(NAME, what, "leave them out"));
    }
    let shape = slid(NAME, &window, image)?;
    Ok(smallvec![TensorType { dtype: image.dtype, shape }])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (average, window) = average(NAME, call.attrs)?;
    let mut average = average.clone();
    average.image = window.lengths(NAME, &call.inputs[0])?.iter().cloned().collect();
    let made = e.apply(&AVG_POOL_GRAD, vec![call.grad()?], Attrs::Average(Box::new(average)))?;
    Ok(vec![crate::emit::dense(made)])
}

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
        simd::level().run(AvgPoolRow {
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

impl<T: Float> simd::SimdKernel for AvgPoolRow<'_, T> {
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

/// Images and windows of every kind, with padding that counts and that does not.
pub(super) fn averages() -> Vec<(TensorType, Average)> {
    let of = |(number, (ty, window)): (usize, (TensorType, _))| {
        let average = Average { window, counts_padding: number % 2 == 1, image: Shape::scalar() };
        (ty, average)
    };
    let twice = cases().into_iter().take(3).chain(cases());
    twice.enumerate().map(of).collect()
}

/// What the windows of an image give.
pub(super) fn made(image: &TensorType, average: &Average) -> Sizes {
    let window = super::checked(NAME, &average.window);
    let shape = window.and_then(|window| slid(NAME, &window, image));
    shape.ok().and_then(|shape| shape.sizes()).unwrap_or_default()
}
