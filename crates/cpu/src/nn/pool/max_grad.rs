//! The kernel of `max_pool_grad`. Each thread owns rows of the image and looks at every window that covers them, in
//! order: the same sums at any number of threads, without atomics. 16-bit floats are added in f32 and rounded at each
//! addition.

use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::{DType, Element};
use tonnage_ops::nn::pool::max_grad::NAME;
use tonnage_ops::nn::pool::window;
use tonnage_ops::nn::window::WindowGeometry;
use tonnage_simd::{Isa, SimdKernel, level};

use super::PixelRow;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::nn::window::Pixels;
use crate::number::{Number, with_sum};
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`MAX_POOL_GRAD`](tonnage_ops::nn::pool::max_grad::MAX_POOL_GRAD).
pub static MAX_POOL_GRAD: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let window = window(NAME, k.attrs)?;
    let spread =
        MaxPoolGradCall { into: &k.inputs[0], numbers: &k.inputs[1], g: &k.inputs[2], window };
    let out = &mut k.outputs[0];
    with_sum!(NAME, out.dtype, T => match spread.numbers.dtype {
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
            level().run(MaxPoolGradRow {
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

impl<T: Number, N: Element + Into<usize>> SimdKernel for MaxPoolGradRow<'_, T, N> {
    type Output = ();
    // Wider numbers are those of windows of more than 256 elements.
    const VECTORS: bool = size_of::<N>() == 1;

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
                        add::<I, T, N>(out, made, from, (self.narrow)(first + tap));
                    }
                }
            }
        }
    }
}

/// Adds the values of a window, from these places on, to one pixel, where the numbers beside them are that one. All are looked
/// at and chosen from, whole vectors at a time: a jump for each element costs more than the choice.
#[inline(always)]
fn add<I: Isa, T: Number, N: Element + Into<usize>>(
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
            *out = if *number == wanted { out.plus(I::element(*value)) } else { *out };
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
