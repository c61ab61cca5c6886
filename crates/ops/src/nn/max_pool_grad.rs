//! `max_pool_grad`: an image with the gradient of each window's maximum added where that maximum was.
//!
//! Windows overlap, so an element may be the maximum of several. Each thread owns rows of the image and
//! looks at every window that covers them, in order: the same sums at any number of threads, without
//! atomics. 16-bit floats are added in f32 and rounded at each addition.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{Data, In, Kernel, Out};
use tonnage_core::row::{
    Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, SampleInput, Saves, Types, Values,
    no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Call, DType, Element, Emit, OpDef, TensorType, Workers};

use super::max_pool;
use super::max_pool_pick::MAX_POOL_PICK;
use super::window::{Window, window_axes};
use crate::infer::{cost, dtype, elements, inputs, number, same_dtype, shape};
use crate::number::{Number, with_number};
use crate::strided::{self, Positions};

/// `(into, numbers, g) -> into + g at the maxima`; numbers as the aux output of `max_pool`, the window as
/// [`Attrs::Window`](tonnage_core::Attrs::Window).
pub static MAX_POOL_GRAD: OpDef = OpDef {
    name: "max_pool_grad",
    doc: "An image with values added where each window has its maximum.",
    infer,
    axes: |_| window_axes(3),
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(1).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        cost(call.inputs.get(2).map_or(0, elements), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 2]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || max_pool::samples().into_iter().map(sample).collect(),
};

fn infer(call: &Call) -> Result<Types> {
    let op = "max_pool_grad";
    let [into, numbers, g] = inputs(op, call)?;
    number(op, into)?;
    same_dtype(op, into, g)?;
    let window = Window::of(op, call.attrs)?;
    dtype(op, numbers, |d| d == window.index_dtype(), "the dtype that `max_pool` gave")?;
    let made = window.slide(op, into)?;
    shape(op, &numbers.shape, &made, "pass the numbers that `max_pool` gave for this image")?;
    shape(op, &g.shape, &made, "pass one value for each window")?;
    Ok(smallvec![into.clone()])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let picked = match call.needs[2] {
        true => {
            let inputs = vec![g.clone(), call.input(1)?];
            Some(Cotangent::Dense(emit.apply(&MAX_POOL_PICK, inputs, call.attrs.clone())?))
        }
        false => None,
    };
    Ok(vec![Some(Cotangent::Dense(g)), None, picked])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let window = Window::of("max_pool_grad", k.attrs)?;
    let spread = Spread { into: &k.inputs[0], numbers: &k.inputs[1], g: &k.inputs[2], window };
    let out = &mut k.outputs[0];
    with_number!("max_pool_grad", out.dtype, T => match spread.numbers.dtype {
        DType::U8 => spread.over::<T, u8>(out, k.workers),
        _ => spread.over::<T, u16>(out, k.workers),
    });
    Ok(())
}

struct Spread<'a> {
    into: &'a In<'a>,
    numbers: &'a In<'a>,
    g: &'a In<'a>,
    window: Window,
}

impl Spread<'_> {
    fn over<T: Number, I: Element + Into<usize>>(&self, out: &mut Out, workers: &dyn Workers) {
        let [_, height, width, channels] = out.sizes[..] else { return };
        let row = width * channels;
        for_each_chunk(workers, out.slice::<T>(), row, &|number, to| {
            if let Data::Slice(_) = self.into.data {
                strided::copy(&self.into.layout, self.into.slice::<T>(), number * row, to);
            }
            self.row::<T, I>(number / height, number % height, to, channels);
        });
    }

    /// Adds to row `y` of one image what the windows over it give.
    fn row<T: Number, I: Element + Into<usize>>(
        &self,
        batch: usize,
        y: usize,
        out: &mut [T],
        channels: usize,
    ) {
        let (window, width) = (&self.window, self.window.size[1]);
        let [_, rows, columns, _] = self.g.layout.sizes[..] else { return };
        let (values, numbers) = (self.g.slice::<T>(), self.numbers.slice::<I>());
        let (value_at, number_at) =
            (Positions::of(&self.g.layout), Positions::of(&self.numbers.layout));
        for row in window.covering(0, y, rows) {
            // Row `y` of the image is this row of the window.
            let first = (y + window.padding[0][0] - row * window.stride[0]) * width;
            for column in 0..columns {
                let start = ((batch * rows + row) * columns + column) * channels;
                let left = column * window.stride[1];
                for channel in 0..channels {
                    let number: usize = numbers[number_at.at(start + channel)].into();
                    let Some(j) = number.checked_sub(first).filter(|j| *j < width) else {
                        continue;
                    };
                    // Only a window without any element of the image points into padding.
                    let x = (left + j).checked_sub(window.padding[1][0]);
                    if let Some(to) = x.and_then(|x| out.get_mut(x * channels + channel)) {
                        *to = to.plus(values[value_at.at(start + channel)]);
                    }
                }
            }
        }
    }
}

/// The sample of `max_pool` with any numbers that a window has, those of padding too.
fn sample(of: Sample) -> Sample {
    let image = of.inputs[0].ty.clone();
    let (Ok(window), attrs) = (Window::of("max_pool_grad", &of.attrs), of.attrs.clone()) else {
        return of;
    };
    let made = window.slide("max_pool_grad", &image).unwrap_or_default();
    let values = TensorType::new(image.dtype, &made);
    let numbers = SampleInput {
        ty: TensorType::new(window.index_dtype(), made),
        values: Values::Below(window.area()),
    };
    let mut sample = Sample::of(&[image.clone(), image, values], attrs);
    sample.inputs[1] = numbers;
    sample
}
