//! The kernel of `max_pool_pick`.

use tonnage_core::error::Result;
use tonnage_core::lent::{In, Out};
use tonnage_core::{DType, Element};
use tonnage_ops::nn::pool::max_pick::NAME;
use tonnage_ops::nn::pool::window;
use tonnage_ops::nn::window::WindowGeometry;

use super::PixelRow;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::nn::window::Pixels;
use crate::number::with_width;
use crate::strided::Positions;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`MAX_POOL_PICK`](tonnage_ops::nn::pool::max_pick::MAX_POOL_PICK).
pub static MAX_POOL_PICK: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

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
