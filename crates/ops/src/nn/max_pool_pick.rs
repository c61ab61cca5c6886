//! `max_pool_pick`: the element of each window that has a given number. The transpose of
//! `max_pool_grad`; with the numbers of `max_pool` it is that op's forward derivative.
//!
//! A number that points into padding picks 0.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel, Out};
use tonnage_core::row::{
    Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, Saves, Types, no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Call, DType, Element, Emit, OpDef, Scalar, TensorType, Workers};

use super::max_pool_grad::MAX_POOL_GRAD;
use super::window::{Window, window_axes};
use crate::infer::{cost, dtype, inputs, number, shape};
use crate::number::with_width;
use crate::strided::Positions;

/// `(image, numbers) -> elements`; the window as [`Attrs::Window`].
pub static MAX_POOL_PICK: OpDef = OpDef {
    name: "max_pool_pick",
    doc: "The element of each window of an image that has a given number.",
    infer,
    axes: |_| window_axes(2),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(1).always()]]),
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
    let op = "max_pool_pick";
    let [image, numbers] = inputs(op, call)?;
    number(op, image)?;
    let window = Window::of(op, call.attrs)?;
    dtype(op, numbers, |d| d == window.index_dtype(), "the dtype that `max_pool` gave")?;
    let made = window.slide(op, image)?;
    shape(op, &numbers.shape, &made, "pass the numbers that `max_pool` gave for this image")?;
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
    let window = Window::of("max_pool_pick", k.attrs)?;
    let (image, numbers, out) = (&k.inputs[0], &k.inputs[1], &mut k.outputs[0]);
    // All zero bits are zero in every dtype that is a number.
    with_width!(image.dtype, T => match numbers.dtype {
        DType::U8 => pick::<T, u8>(image, numbers, window, out, 0, k.workers),
        _ => pick::<T, u16>(image, numbers, window, out, 0, k.workers),
    });
    Ok(())
}

fn pick<T: Element, I: Element + Into<usize>>(
    image: &In,
    numbers: &In,
    window: Window,
    out: &mut Out,
    zero: T,
    workers: &dyn Workers,
) {
    let [_, height, width, _] = image.layout.sizes[..] else { return };
    let [_, rows, columns, channels] = out.sizes[..] else { return };
    let (row, data) = (columns * channels, image.slice::<T>());
    let (numbers, number_at) = (numbers.slice::<I>(), Positions::of(&numbers.layout));
    for_each_chunk(workers, out.slice::<T>(), row, &|number, to| {
        let (batch, line) = (number / rows, number % rows);
        let lines = window.inside(0, line, height);
        for (i, to) in to.iter_mut().enumerate() {
            let (column, channel) = (i / channels, i % channels);
            let which: usize = numbers[number_at.at(number * row + i)].into();
            let (dy, dx) = (which / window.size[1], which % window.size[1]);
            *to = match lines.contains(&dy) && window.inside(1, column, width).contains(&dx) {
                true => {
                    let (y, x) = (window.place(0, line, dy), window.place(1, column, dx));
                    data[image.layout.position(&[batch, y, x, channel])]
                }
                false => zero,
            };
        }
    });
}
