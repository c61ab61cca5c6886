//! `max_pool_pick`: the element of each window that has a given number. The transpose of
//! `max_pool_grad`; with the numbers of `max_pool` it is that op's forward derivative.
//!
//! A number that points into padding picks 0.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel, Out};
use tonnage_core::row::{
    Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Call, DType, Element, Emit, OpDef, Scalar, TensorType, Workers};

use super::max_grad::MAX_POOL_GRAD;
use super::{PixelRow, axes, index_dtype, slid, window};
use crate::infer::{cost, dtype, inputs, number, shape};
use crate::nn::window::{Pixels, WindowGeometry};
use crate::number::with_width;
use crate::strided::Positions;

const NAME: &str = "max_pool_pick";

/// `(image, numbers) -> elements`; the window as [`Attrs::Window`].
pub static MAX_POOL_PICK: OpDef = OpDef {
    name: NAME,
    doc: "The element of each window of an image that has a given number.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 2),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(&made).chain(call.inputs.get(1)))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let image_and_numbers = |mut sample: Sample| {
            sample.inputs.truncate(2);
            sample
        };
        (MAX_POOL_GRAD.samples)().into_iter().map(image_and_numbers).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [image, numbers] = inputs(NAME, call)?;
    number(NAME, image)?;
    let window = window(NAME, call.attrs)?;
    dtype(NAME, numbers, |d| d == index_dtype(&window), "the dtype that `max_pool` gave")?;
    let made = slid(NAME, &window, image)?;
    shape(NAME, &numbers.shape, &made, "pass the numbers that `max_pool` gave for this image")?;
    Ok(smallvec![TensorType { dtype: image.dtype, shape: made }])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let of = call.inputs[0].clone();
    let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
    let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
    let parts = vec![zeros, call.input(1)?, call.grad()?];
    let image = emit.apply(&MAX_POOL_GRAD, parts, call.attrs.clone())?;
    Ok(vec![Some(Cotangent::Dense(image)), None])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let window = window(NAME, k.attrs)?;
    let (image, numbers, out) = (&k.inputs[0], &k.inputs[1], &mut k.outputs[0]);
    // All zero bits are zero in every dtype that is a number.
    with_width!(image.dtype, T => match numbers.dtype {
        DType::U8 => pick::<T, u8>(image, numbers, window, out, 0, k.workers),
        _ => pick::<T, u16>(image, numbers, window, out, 0, k.workers),
    })
}

fn pick<T: Element, I: Element + Into<usize>>(
    image: &In,
    numbers: &In,
    window: WindowGeometry,
    out: &mut Out,
    zero: T,
    workers: &dyn Workers,
) -> Result<()> {
    let (sizes, out) = out.parts::<T>();
    let (pixels, data) = (Pixels::of(&image.layout), image.slice::<T>());
    let ([zs, ys, xs], lengths, channels) = (window.axes, pixels.lengths, pixels.channels);
    let row_len = sizes[sizes.len() - 2] * channels;
    let (numbers, number_at) = (numbers.slice::<I>(), Positions::of(&numbers.layout));
    for_each_chunk(workers, out, row_len, &|number, to| {
        let PixelRow { batch, at: [z, y] } = PixelRow::of(number, sizes);
        let (slabs, rows) = (zs.inside(z, lengths[0]), ys.inside(y, lengths[1]));
        for (i, to) in to.iter_mut().enumerate() {
            let (column, channel) = (i / channels, i % channels);
            let which: usize = numbers[number_at.at(number * row_len + i)].into();
            let taps = [which / xs.size / ys.size, which / xs.size % ys.size, which % xs.size];
            let inside = slabs.contains(&taps[0])
                && rows.contains(&taps[1])
                && xs.inside(column, lengths[2]).contains(&taps[2]);
            *to = match inside {
                true => {
                    let place =
                        [zs.place(z, taps[0]), ys.place(y, taps[1]), xs.place(column, taps[2])];
                    data[(pixels.at(batch, place) + channel as isize * pixels.channel) as usize]
                }
                false => zero,
            };
        }
    })
}
