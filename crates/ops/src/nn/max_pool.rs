//! `max_pool`: the largest element of each window of an image, channel by channel.
//!
//! Padding counts as less than everything. NaN wins, so that it shows; of equal elements the first one,
//! row by row, is the largest, and gets the gradient. For the gradient the op keeps that element's number
//! within its window, in one or two bytes, and neither its input nor its output.

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
use crate::infer::{cost, elements, inputs, number};
use crate::number::{Number, with_number};
use crate::parallel::{Pair, for_each_pair};

/// `image [batch, height, width, channels] -> maxima`; the window as [`Attrs::Window`].
pub static MAX_POOL: OpDef = OpDef {
    name: "max_pool",
    doc: "The largest element of each window of an image, channel by channel.",
    infer,
    axes: |_| window_axes(1),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves { alternatives: &[&[Keep::Aux(0).always()]], aux },
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let area = Window::of("max_pool", call.attrs).map_or(0, |w| w.area() as u64);
        let flops = made.iter().map(elements).sum::<u64>().saturating_mul(area);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [image] = inputs("max_pool", call)?;
    number("max_pool", image)?;
    let shape = Window::of("max_pool", call.attrs)?.slide("max_pool", image)?;
    Ok(smallvec![TensorType { dtype: image.dtype, shape }])
}

/// The number of each maximum within its window.
fn aux(call: &Call) -> Result<Types> {
    let window = Window::of("max_pool", call.attrs)?;
    let made = infer(call)?;
    Ok(made.into_iter().map(|ty| TensorType { dtype: window.index_dtype(), ..ty }).collect())
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let of = call.inputs[0].clone();
    let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
    let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
    let parts = vec![zeros, call.aux(0)?, call.grad()?];
    let image = emit.apply(&MAX_POOL_GRAD, parts, call.attrs.clone())?;
    Ok(vec![Some(Cotangent::Dense(image))])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let window = Window::of("max_pool", k.attrs)?;
    let pool = Pool { image: &k.inputs[0], window };
    let (out, aux) = k.outputs.split_at_mut(1);
    with_number!("max_pool", pool.image.dtype, T => {
        match aux.first_mut() {
            None => pool.plain::<T>(&mut out[0], k.workers),
            Some(index) if index.dtype == DType::U8 => {
                pool.indexed::<T, u8>(&mut out[0], index.slice(), |i| i as u8, k.workers);
            }
            Some(index) => {
                pool.indexed::<T, u16>(&mut out[0], index.slice(), |i| i as u16, k.workers);
            }
        }
    });
    Ok(())
}

struct Pool<'a> {
    image: &'a In<'a>,
    window: Window,
}

impl Pool<'_> {
    fn plain<T: Number>(&self, out: &mut Out, workers: &dyn Workers) {
        let (rows, row) = (out.sizes[1], out.sizes[2] * out.sizes[3]);
        for_each_chunk(workers, out.slice::<T>(), row, &|number, to| {
            self.row(number / rows, number % rows, to, |_, _| {});
        });
    }

    fn indexed<T: Number, I: Element>(
        &self,
        out: &mut Out,
        index: &mut [I],
        narrow: fn(usize) -> I,
        workers: &dyn Workers,
    ) {
        let (rows, row) = (out.sizes[1], out.sizes[2] * out.sizes[3]);
        let pair = Pair { a: out.slice::<T>(), chunk_a: row, b: index, chunk_b: row };
        for_each_pair(workers, pair, &|number, to, index| {
            index.fill(narrow(0));
            self.row(number / rows, number % rows, to, |at, i| index[at] = narrow(i));
        });
    }

    /// One row of windows, all channels; says `found(position, number in the window)` for every
    /// element that is the largest so far.
    fn row<T: Number>(
        &self,
        batch: usize,
        row: usize,
        out: &mut [T],
        mut found: impl FnMut(usize, usize),
    ) {
        let (layout, data, window) = (&self.image.layout, self.image.slice::<T>(), &self.window);
        let [_, height, width, channels] = layout.sizes[..] else { return };
        let step = layout.strides[3];
        // Only an image without any row or column has windows that keep this.
        out.fill(T::LOWEST);
        for (column, out) in out.chunks_mut(channels).enumerate() {
            let mut first = true;
            for i in window.inside(0, row, height) {
                for j in window.inside(1, column, width) {
                    let (y, x) = (window.place(0, row, i), window.place(1, column, j));
                    let start = layout.position(&[batch, y, x, 0]) as isize;
                    let number = i * window.size[1] + j;
                    let mut see = |channel: usize, out: &mut T, value: T| {
                        if first || value.above(*out) {
                            *out = value;
                            found(column * channels + channel, number);
                        }
                    };
                    match step {
                        1 => {
                            let values = &data[start as usize..start as usize + channels];
                            let pairs = out.iter_mut().zip(values).enumerate();
                            pairs.for_each(|(channel, (out, value))| see(channel, out, *value));
                        }
                        _ => out.iter_mut().enumerate().for_each(|(channel, out)| {
                            see(channel, out, data[(start + channel as isize * step) as usize]);
                        }),
                    }
                    first = false;
                }
            }
        }
    }
}

/// Shared by the three ops of max pooling: images and windows of every kind.
pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, image: [usize; 4], size, stride, padding| {
        let attrs = Attrs::Window { size, stride, padding };
        Sample::of(&[TensorType::new(dtype, image)], attrs)
    };
    let none = [[0, 0], [0, 0]];
    vec![
        of(DType::F64, [2, 4, 6, 3], [2, 2], [2, 2], none),
        of(DType::F64, [1, 5, 7, 2], [3, 3], [2, 2], [[1, 1], [1, 1]]),
        of(DType::F64, [2, 7, 5, 1], [2, 3], [1, 2], [[0, 1], [2, 0]]),
        of(DType::F64, [1, 20, 20, 2], [17, 17], [1, 3], [[4, 4], [0, 16]]),
        of(DType::F32, [1, 3, 1025, 1], [1, 2], [1, 1], none),
        of(DType::F32, [2, 2, 2, 1023], [2, 2], [1, 1], none),
        of(DType::F32, [1, 9, 9, 4], [2, 2], [4, 4], none),
        of(DType::F16, [1, 4, 4, 2], [2, 2], [2, 2], none),
        of(DType::BF16, [1, 4, 4, 2], [2, 2], [2, 2], none),
        of(DType::I32, [2, 4, 4, 3], [3, 3], [1, 1], [[1, 1], [1, 1]]),
        of(DType::U8, [1, 4, 4, 2], [2, 2], [2, 2], none),
        of(DType::F32, [0, 4, 4, 2], [2, 2], [2, 2], none),
        of(DType::F32, [2, 4, 4, 0], [2, 2], [2, 2], none),
    ]
}
