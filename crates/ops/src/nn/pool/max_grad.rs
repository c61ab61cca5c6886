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

use super::max_pick::MAX_POOL_PICK;
use super::{Line, axes, index_dtype, max, slid, window};
use crate::infer::{cost, dtype, elements, inputs, number, same_dtype, shape};
use crate::nn::window::{Pixels, Window};
use crate::number::{Number, with_number};
use crate::strided::{self, Positions};

const NAME: &str = "max_pool_grad";

/// `(into, numbers, g) -> into + g at the maxima`; numbers as the aux output of `max_pool`, the window as
/// [`Attrs::Window`](tonnage_core::Attrs::Window).
pub static MAX_POOL_GRAD: OpDef = OpDef {
    name: NAME,
    doc: "An image with values added where each window has its maximum.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 3),
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
    samples: || max::samples().into_iter().map(sample).collect(),
};

fn infer(call: &Call) -> Result<Types> {
    let [into, numbers, g] = inputs(NAME, call)?;
    number(NAME, into)?;
    same_dtype(NAME, into, g)?;
    let window = window(NAME, call.attrs)?;
    dtype(NAME, numbers, |d| d == index_dtype(&window), "the dtype that `max_pool` gave")?;
    let made = slid(NAME, &window, into)?;
    shape(NAME, &numbers.shape, &made, "pass the numbers that `max_pool` gave for this image")?;
    shape(NAME, &g.shape, &made, "pass one value for each window")?;
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
    let window = window(NAME, k.attrs)?;
    let spread = Spread { into: &k.inputs[0], numbers: &k.inputs[1], g: &k.inputs[2], window };
    let out = &mut k.outputs[0];
    with_number!(NAME, out.dtype, T => match spread.numbers.dtype {
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
        let sizes = out.sizes.clone();
        let (channels, width) = (sizes[sizes.len() - 1], sizes[sizes.len() - 2]);
        let line = width * channels;
        for_each_chunk(workers, out.slice::<T>(), line, &|number, to| {
            if let Data::Slice(_) = self.into.data {
                strided::copy(&self.into.layout, self.into.slice::<T>(), number * line, to);
            }
            self.line::<T, I>(Line::of(number, &sizes), to, channels);
        });
    }

    /// Adds to one line of the image what the windows over it give, window by window from the last tap back: those
    /// come in the order in which they lie.
    fn line<T: Number, I: Element + Into<usize>>(
        &self,
        line: Line,
        out: &mut [T],
        channels: usize,
    ) {
        let [zs, ys, xs] = self.window.axes;
        let made = Pixels::of(&self.g.layout);
        let (values, numbers) = (self.g.slice::<T>(), self.numbers.slice::<I>());
        let (value_at, number_at) =
            (Positions::of(&self.g.layout), Positions::of(&self.numbers.layout));
        let [depth, rows, columns] = made.lengths;
        let Line { batch, at: [z, y] } = line;
        for i in (0..zs.size).rev() {
            let Some(slab) = zs.window_at(z, i, depth) else { continue };
            for j in (0..ys.size).rev() {
                let Some(row) = ys.window_at(y, j, rows) else { continue };
                // This line of the image is these taps of the windows.
                let first = (i * ys.size + j) * xs.size;
                for column in 0..columns {
                    let start =
                        (((batch * depth + slab) * rows + row) * columns + column) * channels;
                    for channel in 0..channels {
                        let number: usize = numbers[number_at.at(start + channel)].into();
                        let Some(tap) = number.checked_sub(first).filter(|tap| *tap < xs.size)
                        else {
                            continue;
                        };
                        // Only a window without any element of the image points into padding.
                        let x = (column * xs.stride + tap * xs.dilation).checked_sub(xs.padding[0]);
                        if let Some(to) = x.and_then(|x| out.get_mut(x * channels + channel)) {
                            *to = to.plus(values[value_at.at(start + channel)]);
                        }
                    }
                }
            }
        }
    }
}

/// The sample of `max_pool` with any numbers that a window has, those of padding too.
fn sample(of: Sample) -> Sample {
    let image = of.inputs[0].ty.clone();
    let (Ok(window), attrs) = (window(NAME, &of.attrs), of.attrs.clone()) else {
        return of;
    };
    let made = slid(NAME, &window, &image).unwrap_or_default();
    let values = TensorType::new(image.dtype, &made);
    let numbers = SampleInput {
        ty: TensorType::new(index_dtype(&window), made),
        values: Values::Below(window.area()),
    };
    let mut sample = Sample::of(&[image.clone(), image, values], attrs);
    sample.inputs[1] = numbers;
    sample
}
