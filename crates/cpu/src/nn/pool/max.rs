//! The kernel of `max_pool`.

use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::{DType, Element};
use tonnage_ops::nn::pool::max::NAME;
use tonnage_ops::nn::pool::window;
use tonnage_ops::nn::window::WindowGeometry;
use tonnage_simd::{Isa, SimdKernel, level};

use super::PixelRow;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::nn::window::Pixels;
use crate::number::{Number, with_number};
use crate::parallel::{ChunkedPair, for_each_pair};
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`MAX_POOL`](tonnage_ops::nn::pool::max::MAX_POOL).
pub static MAX_POOL: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (image, window) = (&k.inputs[0], window(NAME, k.attrs)?);
    let (out, aux) = k.outputs.split_at_mut(1);
    with_number!(NAME, image.dtype, T => {
        let (sizes, out) = out[0].parts::<T>();
        let pool = MaxPoolCall { image, pixels: Pixels::of(&image.layout), window, sizes };
        match aux.first_mut() {
            None => pool.plain::<T>(out, k.workers),
            Some(index) if index.dtype == DType::U8 => {
                pool.indexed::<T, u8>(out, index.slice(), |i| i as u8, k.workers)
            }
            Some(index) => {
                pool.indexed::<T, u16>(out, index.slice(), |i| i as u16, k.workers)
            }
        }
    })
}

struct MaxPoolCall<'a> {
    image: &'a In<'a>,
    pixels: Pixels,
    window: WindowGeometry,
    /// Of the result.
    sizes: &'a [usize],
}

impl MaxPoolCall<'_> {
    /// Elements of one row of results.
    fn row_len(&self) -> usize {
        let rank = self.sizes.len();
        self.sizes[rank - 2] * self.sizes[rank - 1]
    }

    fn plain<T: Number>(&self, out: &mut [T], workers: &dyn Workers) -> Result<()> {
        for_each_chunk(workers, out, self.row_len(), &|number, to| {
            let row = PixelRow::of(number, self.sizes);
            level().run(MaxPoolRow { of: self, row, out: to, note: () });
        })
    }

    fn indexed<T: Number, I: Element>(
        &self,
        out: &mut [T],
        index: &mut [I],
        narrow: fn(usize) -> I,
        workers: &dyn Workers,
    ) -> Result<()> {
        let row_len = self.row_len();
        let pair = ChunkedPair { a: out, chunk_a: row_len, b: index, chunk_b: row_len };
        for_each_pair(workers, pair, &|number, to, index| {
            let row = PixelRow::of(number, self.sizes);
            level().run(MaxPoolRow {
                of: self,
                row,
                out: to,
                note: ArgmaxOutput { index, narrow },
            });
        })
    }
}

/// What is written down about the largest elements so far.
trait Note {
    /// Puts the values of one tap where they are larger than what is in `out`, everywhere if it is the first one; `out`
    /// begins at element `start` of the row.
    fn see<T: Number>(
        &mut self,
        tap: Tap,
        start: usize,
        out: &mut [T],
        values: impl Iterator<Item = T>,
    );

    /// Of a window without any element.
    fn none<T: Number>(&mut self, start: usize, out: &mut [T]);

    /// False for a note that few windows have: one loop does for all levels.
    const VECTORS: bool = true;
}

/// One tap of a window.
#[derive(Clone, Copy)]
struct Tap {
    /// Its number, of all taps of the window.
    number: usize,
    /// Whether it is the first one inside of the image.
    first: bool,
}

impl Note for () {
    #[inline(always)]
    fn see<T: Number>(
        &mut self,
        tap: Tap,
        _: usize,
        out: &mut [T],
        values: impl Iterator<Item = T>,
    ) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = if tap.first | value.above(*out) { value } else { *out };
        }
    }

    #[inline(always)]
    fn none<T: Number>(&mut self, _: usize, out: &mut [T]) {
        out.fill(T::LOWEST);
    }
}

struct ArgmaxOutput<'a, I> {
    index: &'a mut [I],
    narrow: fn(usize) -> I,
}

impl<I: Element> Note for ArgmaxOutput<'_, I> {
    #[inline(always)]
    fn see<T: Number>(
        &mut self,
        tap: Tap,
        start: usize,
        out: &mut [T],
        values: impl Iterator<Item = T>,
    ) {
        let number = (self.narrow)(tap.number);
        // One slice for all of them, so that whole vectors are compared and chosen from.
        let index = &mut self.index[start..start + out.len()];
        for ((out, index), value) in out.iter_mut().zip(index).zip(values) {
            let larger = tap.first | value.above(*out);
            *out = if larger { value } else { *out };
            *index = if larger { number } else { *index };
        }
    }

    #[inline(always)]
    fn none<T: Number>(&mut self, start: usize, out: &mut [T]) {
        out.fill(T::LOWEST);
        self.index[start..start + out.len()].fill((self.narrow)(0));
    }

    // Wider numbers are those of windows of more than 256 elements.
    const VECTORS: bool = size_of::<I>() == 1;
}

/// One row of windows, all channels.
struct MaxPoolRow<'a, T, N> {
    of: &'a MaxPoolCall<'a>,
    row: PixelRow,
    out: &'a mut [T],
    note: N,
}

impl<T: Number, N: Note> SimdKernel for MaxPoolRow<'_, T, N> {
    type Output = ();
    const VECTORS: bool = N::VECTORS;

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let (pixels, window) = (&self.of.pixels, &self.of.window);
        let ([zs, ys, xs], lengths) = (window.axes, pixels.lengths);
        let (data, channels) = (self.of.image.slice::<T>(), pixels.channels);
        let PixelRow { batch, at: [z, y] } = self.row;
        for (column, out) in self.out.chunks_mut(channels.max(1)).enumerate() {
            let (columns, start) = (xs.inside(column, lengths[2]), column * channels);
            let mut first = true;
            for i in zs.inside(z, lengths[0]) {
                for j in ys.inside(y, lengths[1]) {
                    for l in columns.clone() {
                        let place = [zs.place(z, i), ys.place(y, j), xs.place(column, l)];
                        let at = pixels.at(batch, place);
                        let tap = Tap { number: (i * ys.size + j) * xs.size + l, first };
                        match pixels.channel {
                            1 => {
                                let values = data[at as usize..at as usize + channels].iter();
                                self.note.see(tap, start, out, values.map(|x| I::element(*x)));
                            }
                            step => {
                                let places = (0..channels as isize).map(|c| at + c * step);
                                let values = places.map(|place| I::element(data[place as usize]));
                                self.note.see(tap, start, out, values);
                            }
                        }
                        first = false;
                    }
                }
            }
            if first {
                // A window without any element of the image.
                self.note.none(start, out);
            }
        }
    }
}
