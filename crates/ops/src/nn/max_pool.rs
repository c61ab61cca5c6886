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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing::{Array, check_gradients, check_samples, run};
    use tonnage_core::{ErrorKind, Shape, Symbol};

    /// The maxima, their numbers within the window, and where in the image each lies.
    pub fn naive(image: &Array, attrs: &Attrs) -> (Array, Array, Vec<usize>) {
        let Attrs::Window { size, stride, padding } = attrs else { panic!("{attrs:?}") };
        let s = image.sizes();
        let made = |a: usize| (s[a + 1] + padding[a][0] + padding[a][1] - size[a]) / stride[a] + 1;
        let shape = [s[0], made(0), made(1), s[3]];
        let (mut values, mut numbers, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..shape.iter().product() {
            let c = at % shape[3];
            let (w, h) = (at / shape[3] % shape[2], at / shape[3] / shape[2] % shape[1]);
            let n = at / shape[3] / shape[2] / shape[1];
            let mut best: Option<(f64, usize, usize)> = None;
            for i in 0..size[0] {
                for j in 0..size[1] {
                    let y = (h * stride[0] + i).wrapping_sub(padding[0][0]);
                    let x = (w * stride[1] + j).wrapping_sub(padding[1][0]);
                    if y >= s[1] || x >= s[2] {
                        continue;
                    }
                    let place = ((n * s[1] + y) * s[2] + x) * s[3] + c;
                    let value = image.data[place];
                    let wins =
                        best.is_none_or(|(b, ..)| value > b || value.is_nan() && !b.is_nan());
                    if wins {
                        best = Some((value, i * size[1] + j, place));
                    }
                }
            }
            let (value, number, place) = best.unwrap();
            values.push(value);
            numbers.push(number as f64);
            places.push(place);
        }
        let index = if size[0] * size[1] <= 256 { DType::U8 } else { DType::U16 };
        let (values, numbers) =
            (Array::new(image.ty.dtype, &shape, values), Array::new(index, &shape, numbers));
        (values, numbers, places)
    }

    #[test]
    fn gives_the_largest_of_each_window_and_its_number() {
        check_samples(&MAX_POOL, |inputs, attrs| {
            let (values, numbers, _) = naive(&inputs[0], attrs);
            vec![values, numbers]
        });
    }

    #[test]
    fn the_gradient_goes_to_the_largest() {
        check_gradients(&MAX_POOL);
    }

    #[test]
    fn nan_wins_and_padding_loses_against_negative_infinity() {
        let image = vec![f64::NEG_INFINITY, 1.0, f64::NAN, 2.0];
        let image = Array::new(DType::F32, &[1, 1, 4, 1], image);
        let attrs = Attrs::Window { size: [1, 2], stride: [1, 1], padding: [[0, 0], [1, 0]] };
        let got = run(&MAX_POOL, &[image], &attrs).unwrap();
        assert_eq!(got[0].data[..2], [f64::NEG_INFINITY, 1.0]);
        assert!(got[0].data[2].is_nan() && got[0].data[3].is_nan());
    }

    #[test]
    fn windows_that_make_no_sense_are_refused_and_open_sizes_pass() {
        let kind = |image: &[usize], size, stride, padding| {
            let attrs = Attrs::Window { size, stride, padding };
            let ty = TensorType::new(DType::F32, image);
            infer(&Call::new(&[ty], &attrs)).unwrap_err().kind().clone()
        };
        let none = [[0, 0], [0, 0]];
        let flat = kind(&[4, 4], [2, 2], [2, 2], none);
        assert!(matches!(flat, ErrorKind::RankMismatch { .. }));
        for (size, stride, padding) in [
            ([0, 2], [1, 1], none),
            ([2, 2], [0, 1], none),
            ([2, 2], [1, 1], [[2, 0], [0, 0]]),
            ([5, 1], [1, 1], none),
            ([1000, 1000], [1, 1], none),
        ] {
            let found = kind(&[1, 4, 4, 1], size, stride, padding);
            assert!(matches!(found, ErrorKind::BadArgument { .. }), "{found}");
        }

        let symbol = Symbol::new("h");
        let h = tonnage_core::Dim::symbol(symbol.clone());
        let open: Shape = [1.into(), h, 6.into(), 3.into()].into_iter().collect();
        let attrs = Attrs::Window { size: [3, 2], stride: [2, 2], padding: [[1, 1], [0, 0]] };
        let made = infer(&Call::new(&[TensorType::new(DType::F32, open)], &attrs)).unwrap();
        let known = made[0].shape.substitute(&|s| (*s == symbol).then(|| 7.into()));
        assert_eq!(known, Shape::from([1, 4, 3, 3]));
    }
}
