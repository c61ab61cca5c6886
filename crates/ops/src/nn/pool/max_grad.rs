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
    Fails, Grad, Jvp, Lower, Mem, Remat, Sample, SampleInput, Save, Saves, Types, Values,
    no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Call, DType, Element, Emit, OpDef, TensorType, Workers};

use super::max_pick::MAX_POOL_PICK;
use super::{PixelRow, axes, index_dtype, max, slid, window};
use crate::infer::{cost, dtype, elements, inputs, number, same_dtype, shape};
use crate::nn::window::{Pixels, WindowGeometry};
use crate::number::{Number, with_number};
use crate::simd::{self, Isa};
use crate::strided;

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
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
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
    let spread =
        MaxPoolGradCall { into: &k.inputs[0], numbers: &k.inputs[1], g: &k.inputs[2], window };
    let out = &mut k.outputs[0];
    with_number!(NAME, out.dtype, T => match spread.numbers.dtype {
        DType::U8 => spread.over::<T, u8>(out, |i| i as u8, k.workers),
        _ => spread.over::<T, u16>(out, |i| i as u16, k.workers),
    })
}

struct MaxPoolGradCall<'a> {
    into: &'a In<'a>,
    numbers: &'a In<'a>,
    g: &'a In<'a>,
    window: WindowGeometry,
}

impl MaxPoolGradCall<'_> {
    fn over<T: Number, I: Element + Into<usize>>(
        &self,
        out: &mut Out,
        narrow: fn(usize) -> I,
        workers: &dyn Workers,
    ) -> Result<()> {
        let (sizes, out) = out.parts::<T>();
        let (channels, width) = (sizes[sizes.len() - 1], sizes[sizes.len() - 2]);
        let row_len = width * channels;
        for_each_chunk(workers, out, row_len, &|number, to| {
            if let Data::Slice(_) = self.into.data {
                strided::copy(&self.into.layout, self.into.slice::<T>(), number * row_len, to);
            }
            simd::level().run(MaxPoolGradRow {
                from: PooledValues {
                    values: self.g.slice::<T>(),
                    value: Pixels::of(&self.g.layout),
                    numbers: self.numbers.slice::<I>(),
                    number: Pixels::of(&self.numbers.layout),
                },
                narrow,
                window: &self.window,
                row: PixelRow::of(number, sizes),
                width,
                out: to,
            });
        })
    }
}

/// A value and a number for each window, and where they lie.
struct PooledValues<'a, T, I> {
    values: &'a [T],
    value: Pixels,
    numbers: &'a [I],
    number: Pixels,
}

/// The windows over one row of the image, all channels.
struct MaxPoolGradRow<'a, T, I> {
    from: PooledValues<'a, T, I>,
    narrow: fn(usize) -> I,
    window: &'a WindowGeometry,
    row: PixelRow,
    /// Pixels of the row.
    width: usize,
    out: &'a mut [T],
}

impl<T: Number, N: Element + Into<usize>> simd::SimdKernel for MaxPoolGradRow<'_, T, N> {
    type Output = ();

    /// Adds what the windows over the row give, window by window from the last tap back: those come in the order in which
    /// they lie.
    #[inline(always)]
    fn run<I: Isa>(self) {
        let [zs, ys, xs] = self.window.axes;
        let (made, channels) = (&self.from, self.from.value.channels);
        let [depth, rows, columns] = made.value.lengths;
        let PixelRow { batch, at: [z, y] } = self.row;
        let over_z = (0..zs.size).rev().filter_map(|i| Some((i, zs.window_at(z, i, depth)?)));
        for (i, slab) in over_z {
            for j in (0..ys.size).rev() {
                let Some(row) = ys.window_at(y, j, rows) else { continue };
                // This row of the image is these taps of the windows.
                let first = (i * ys.size + j) * xs.size;
                for column in 0..columns {
                    let place = [slab, row, column];
                    let from = [made.value.at(batch, place), made.number.at(batch, place)];
                    // Taps in padding are left out: only a window without any element of the image points there.
                    for tap in xs.inside(column, self.width) {
                        let at = xs.place(column, tap) * channels;
                        let out = &mut self.out[at..at + channels];
                        add(out, made, from, (self.narrow)(first + tap));
                    }
                }
            }
        }
    }
}

/// Adds the values of a window, from these places on, to one pixel, where the numbers beside them are that one. All are looked
/// at and chosen from, whole vectors at a time: a jump for each element costs more than the choice.
#[inline(always)]
fn add<T: Number, N: Element + Into<usize>>(
    out: &mut [T],
    of: &PooledValues<T, N>,
    [value, number]: [isize; 2],
    wanted: N,
) {
    let count = out.len();
    if of.value.channel == 1 && of.number.channel == 1 {
        let values = &of.values[value as usize..value as usize + count];
        let numbers = &of.numbers[number as usize..number as usize + count];
        for ((out, value), number) in out.iter_mut().zip(values).zip(numbers) {
            *out = if *number == wanted { out.plus(*value) } else { *out };
        }
        return;
    }
    for (channel, out) in out.iter_mut().enumerate() {
        let at = |start: isize, step: isize| (start + channel as isize * step) as usize;
        if of.numbers[at(number, of.number.channel)] == wanted {
            *out = out.plus(of.values[at(value, of.value.channel)]);
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
