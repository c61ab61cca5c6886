//! The windows of an image as an operand of the matmul core: packed from where the image lies, a strip at a time.
//!
//! Along width, taps and their channels mostly lie one after the other in memory. So the windows of neighbours overlap
//! there, and a strip of them is copied once for all: as many rows of pixels as a window has rows of taps. Otherwise
//! each window is copied for itself. What lies in padding is zero.

use tonnage_simd::{Isa, SimdKernel, level};

use std::ops::Range;

use super::band;
use super::slide::Slide;
use super::widen::copy;
use crate::linalg::gemm::{Compute, Packs, Reads, Strip};
use crate::nn::window::Pixels;

/// From this many windows along width on, strips of tiles keep to one row of them.
const LONG: usize = 12;

/// Elements of a window that are copied before they are spread.
const SPREAD: usize = 128;

/// How windows are packed, beside filters that give `outputs` channels.
pub(super) fn packs(
    slides: &[Slide; 3],
    images: usize,
    (channels, outputs): (usize, usize),
    element: usize,
) -> Packs {
    // 16-bit floats are widened.
    let element = element.max(size_of::<f32>());
    if let Some(band) = band::forward(slides, images, (channels, outputs), element) {
        return band;
    }
    let row = if slides[2].windows >= LONG { slides[2].windows } else { usize::MAX };
    Packs::Strips { unit: slides[2].taps * channels, row }
}

/// The windows of an image.
#[derive(Clone, Copy)]
pub(super) struct ImageWindows<'a, T> {
    pub(super) data: &'a [T],
    pub(super) pixels: Pixels,
    pub(super) slides: [Slide; 3],
    /// Channels of one group.
    pub(super) channels: usize,
    /// Taps along width lie side by side, with their channels.
    pub(super) joined: bool,
}

/// Which window.
#[derive(Clone, Copy)]
struct Cursor {
    batch: usize,
    at: [usize; 3],
}

impl<'a, T> ImageWindows<'a, T> {
    pub fn new(
        data: &'a [T],
        pixels: Pixels,
        slides: [Slide; 3],
        channels: usize,
    ) -> ImageWindows<'a, T> {
        let across = slides[2].tap * pixels.strides[2];
        let joined = pixels.channel == 1
            && (slides[2].taps == 1 || slides[2].tap > 0 && across == channels as isize);
        ImageWindows { data, pixels, slides, channels, joined }
    }

    fn cursor(&self, window: usize) -> Cursor {
        let [z, y, x] = self.slides.map(|slide| slide.windows.max(1));
        let (rest, at_x) = (window / x, window % x);
        Cursor { batch: rest / y / z, at: [rest / y % z, rest % y, at_x] }
    }

    #[inline(always)]
    fn next(&self, mut cursor: Cursor) -> Cursor {
        for axis in (0..3).rev() {
            cursor.at[axis] += 1;
            if cursor.at[axis] < self.slides[axis].windows {
                return cursor;
            }
            cursor.at[axis] = 0;
        }
        cursor.batch += 1;
        cursor
    }

    /// Elements of one row of taps.
    #[inline(always)]
    pub(super) fn row_len(&self) -> usize {
        self.slides[2].taps * self.channels
    }

    /// Where the first pixel of row `row` of a window's taps would lie, had the image that column; `None` in padding.
    #[inline(always)]
    fn row_start(&self, group: usize, cursor: &Cursor, row: usize) -> Option<isize> {
        let taps = self.slides[1].taps;
        let (pixels, lengths) = (&self.pixels, &self.pixels.lengths);
        let z = self.slides[0].inside(cursor.at[0], row / taps, lengths[0])?;
        let y = self.slides[1].inside(cursor.at[1], row % taps, lengths[1])?;
        let image = self.start_of(group, cursor.batch);
        Some(image + z * pixels.strides[0] + y * pixels.strides[1])
    }

    /// Where an image's first pixel lies.
    #[inline(always)]
    pub(super) fn start_of(&self, group: usize, image: usize) -> isize {
        let channel = (group * self.channels) as isize * self.pixels.channel;
        self.pixels.start as isize + image as isize * self.pixels.next + channel
    }
}

impl<T> ImageWindows<'_, T> {
    /// As [`GemmOperand::pack`](crate::linalg::gemm::GemmOperand::pack): a row for each window.
    pub fn pack<C: Compute>(
        &self,
        group: usize,
        windows: Range<usize>,
        k_range: Range<usize>,
        width: usize,
        out: &mut [C],
    ) where
        T: Reads<C>,
    {
        if width == 1 {
            let first = self.cursor(windows.start);
            return level().run(PackWindows { of: self, group, first, k_range, out });
        }
        // A few windows beside many filters: elements of each lie `width` apart.
        let panels = out.chunks_exact_mut((width * k_range.len()).max(1));
        for (first, panel) in windows.clone().step_by(width.max(1)).zip(panels) {
            let count = width.min(windows.end - first);
            if count < width {
                panel.fill(C::ZERO);
            }
            let mut cursor = self.cursor(first);
            for window in 0..count {
                self.spread(group, &cursor, &k_range, &mut panel[window..], width);
                cursor = self.next(cursor);
            }
        }
    }

    /// A part of one window, its elements `width` apart.
    fn spread<C: Compute>(
        &self,
        group: usize,
        cursor: &Cursor,
        k_range: &Range<usize>,
        out: &mut [C],
        width: usize,
    ) where
        T: Reads<C>,
    {
        let (row_len, mut run) = (self.row_len(), [C::ZERO; SPREAD]);
        let mut k = k_range.start;
        while k < k_range.end {
            let (row, within) = (k / row_len, k % row_len);
            let count = (row_len - within).min(k_range.end - k).min(SPREAD);
            let run = &mut run[..count];
            match self.row_start(group, cursor, row) {
                Some(start) => self.row(start, cursor.at[2], within..within + count, run),
                None => run.fill(C::ZERO),
            }
            let to = out[(k - k_range.start) * width..].iter_mut().step_by(width);
            to.zip(run).for_each(|(to, from)| *to = *from);
            k += count;
        }
    }

    /// Rows of one strip of tiles.
    pub fn strip<C: Compute>(
        &self,
        group: usize,
        windows: Range<usize>,
        k_range: Range<usize>,
        out: &mut [C],
    ) -> Strip
    where
        T: Reads<C>,
    {
        let (slide, row_len) = (&self.slides[2], self.row_len());
        let first = self.cursor(windows.start);
        let in_one_row = first.at[2] + windows.len() <= slide.windows;
        let whole_rows =
            k_range.start.is_multiple_of(row_len) && k_range.len().is_multiple_of(row_len);
        let side_by_side = self.joined
            && self.pixels.strides[2] == self.channels as isize
            && (slide.taps == 1 || slide.tap == 1);
        if !(side_by_side && in_one_row && whole_rows && slide.step <= slide.taps) {
            let deep = k_range.len();
            self.pack(group, windows, k_range, 1, out);
            return Strip { mn_stride: deep, k_stride: 1, run: deep.max(1), jump: 0 };
        }
        let pixels = (windows.len() - 1) * slide.step + slide.taps;
        let len = pixels * self.channels;
        let rows = k_range.start / row_len..k_range.end / row_len;
        level().run(CopyTapRows { of: self, group, first, rows, out: &mut *out, len });
        Strip {
            mn_stride: slide.step * self.channels,
            k_stride: 1,
            run: row_len,
            jump: len - row_len,
        }
    }

    /// The same transposed: a row for each tap and channel, along windows.
    pub fn pack_transposed<C: Compute>(
        &self,
        group: usize,
        taps: Range<usize>,
        windows: Range<usize>,
        width: usize,
        out: &mut [C],
    ) where
        T: Reads<C>,
    {
        let panels = out.chunks_exact_mut((width * windows.len()).max(1));
        for (first, out) in taps.clone().step_by(width.max(1)).zip(panels) {
            let taps = first..taps.end.min(first + width);
            if taps.len() < width {
                out.fill(C::ZERO);
            }
            level().run(PackTaps { of: self, group, taps, windows: windows.clone(), width, out });
        }
    }

    /// A part of one row of one window's taps.
    #[inline(always)]
    fn row<C: Compute>(&self, start: isize, column: usize, part: Range<usize>, out: &mut [C])
    where
        T: Reads<C>,
    {
        let (slide, channels) = (&self.slides[2], self.channels);
        let (len, stride) = (self.pixels.lengths[2], self.pixels.strides[2]);
        if self.joined {
            let taps = slide.taps_inside(column, len);
            let from = (taps.start * channels).clamp(part.start, part.end);
            let to = (taps.end * channels).clamp(from, part.end);
            let (zeros, rest) = out.split_at_mut(from - part.start);
            let (run, more) = rest.split_at_mut(to - from);
            zeros.fill(C::ZERO);
            more.fill(C::ZERO);
            if !run.is_empty() {
                // Taps lie `channels` apart, so that this is where element `from` of the row is.
                let at = start + slide.place(column, 0) * stride + from as isize;
                copy(&self.data[at as usize..][..run.len()], run);
            }
            return;
        }
        let mut k = part.start;
        while k < part.end {
            let (tap, channel) = (k / channels, k % channels);
            let count = (channels - channel).min(part.end - k);
            let out = &mut out[k - part.start..][..count];
            match slide.inside(column, tap, len) {
                None => out.fill(C::ZERO),
                Some(x) => {
                    let at = start + x * stride + channel as isize * self.pixels.channel;
                    match self.pixels.channel {
                        1 => copy(&self.data[at as usize..][..count], out),
                        step => out.iter_mut().enumerate().for_each(|(i, to)| {
                            *to = self.data[(at + i as isize * step) as usize].read();
                        }),
                    }
                }
            }
            k += count;
        }
    }
}

/// The pixels of neighbours' windows, a row for each row of their taps.
struct CopyTapRows<'a, 'w, C, T> {
    of: &'a ImageWindows<'w, T>,
    group: usize,
    first: Cursor,
    rows: Range<usize>,
    out: &'a mut [C],
    /// Elements of a row.
    len: usize,
}

impl<C: Compute, T: Reads<C>> SimdKernel for CopyTapRows<'_, '_, C, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let CopyTapRows { of, group, first, rows, out, len } = self;
        let (start, channels) = (of.slides[2].place(first.at[2], 0), of.channels as isize);
        let width = of.pixels.lengths[2] as isize;
        // Pixels before and after the image.
        let before = ((-start).max(0) * channels).min(len as isize) as usize;
        let end = ((width - start).max(0) * channels).clamp(before as isize, len as isize);
        for (row, out) in rows.zip(out.chunks_exact_mut(len)) {
            let Some(at) = of.row_start(group, &first, row) else {
                out.fill(C::ZERO);
                continue;
            };
            let (zeros, rest) = out.split_at_mut(before);
            let (run, more) = rest.split_at_mut(end as usize - before);
            zeros.fill(C::ZERO);
            more.fill(C::ZERO);
            if !run.is_empty() {
                let at = at + start * of.pixels.strides[2] + before as isize;
                copy(&of.data[at as usize..][..run.len()], run);
            }
        }
    }
}

/// Windows one after the other.
struct PackWindows<'a, 'w, C, T> {
    of: &'a ImageWindows<'w, T>,
    group: usize,
    first: Cursor,
    k_range: Range<usize>,
    out: &'a mut [C],
}

impl<C: Compute, T: Reads<C>> SimdKernel for PackWindows<'_, '_, C, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let PackWindows { of, group, first, k_range, out } = self;
        let (row_len, deep) = (of.row_len(), k_range.len());
        if deep == 0 || row_len == 0 {
            return;
        }
        let slide = &of.slides[2];
        let (mut cursor, mut out) = (first, out);
        while !out.is_empty() {
            // Windows along one row of the image.
            let count = (slide.windows - cursor.at[2]).min(out.len() / deep);
            let (run, rest) = std::mem::take(&mut out).split_at_mut(count * deep);
            let mut k = k_range.start;
            while k < k_range.end {
                let (row, from) = (k / row_len, k % row_len);
                let part = from..row_len.min(from + k_range.end - k);
                let start = of.row_start(group, &cursor, row);
                let columns = cursor.at[2]..cursor.at[2] + count;
                for (column, out) in columns.zip(run.chunks_exact_mut(deep)) {
                    let out = &mut out[k - k_range.start..][..part.len()];
                    match start {
                        Some(start) => of.row(start, column, part.clone(), out),
                        None => out.fill(C::ZERO),
                    }
                }
                k += part.len();
            }
            cursor.at[2] += count - 1;
            (cursor, out) = (of.next(cursor), rest);
        }
    }
}

/// Windows side by side: for each, some taps and channels.
struct PackTaps<'a, 'w, C, T> {
    of: &'a ImageWindows<'w, T>,
    group: usize,
    taps: Range<usize>,
    windows: Range<usize>,
    width: usize,
    out: &'a mut [C],
}

impl<C: Compute, T: Reads<C>> PackTaps<'_, '_, C, T> {
    /// The same part of one row of taps, for every window.
    #[inline(always)]
    fn part(&mut self, row: usize, part: Range<usize>, offset: usize) {
        let (of, width) = (self.of, self.width);
        let slide = &of.slides[2];
        let (len, stride) = (of.pixels.lengths[2], of.pixels.strides[2]);
        let mut cursor = of.cursor(self.windows.start);
        let mut left = self.windows.len();
        let mut out = &mut self.out[..];
        while left > 0 {
            // Windows along one row of the image.
            let count = (slide.windows - cursor.at[2]).min(left);
            let (run, rest) = std::mem::take(&mut out).split_at_mut(count * width);
            let start = of.row_start(self.group, &cursor, row);
            let columns = cursor.at[2]..cursor.at[2] + count;
            // Of these, the ones whose taps all lie in the image.
            let taps = part.start / of.channels..part.end.div_ceil(of.channels);
            let whole = match start {
                Some(_) if of.joined => slide.whole(taps, len, columns.clone()),
                _ => columns.start..columns.start,
            };
            let edge = |columns: Range<usize>, run: &mut [C]| {
                for (column, out) in columns.zip(run.chunks_exact_mut(width)) {
                    let out = &mut out[offset..offset + part.len()];
                    match start {
                        Some(start) => of.row(start, column, part.clone(), out),
                        None => out.fill(C::ZERO),
                    }
                }
            };
            edge(columns.start..whole.start, run);
            edge(whole.end..columns.end, &mut run[(whole.end - columns.start) * width..]);
            if let Some(start) = start.filter(|_| !whole.is_empty()) {
                let at = start + slide.place(whole.start, 0) * stride + part.start as isize;
                let step = slide.step as isize * stride;
                let run = &mut run[(whole.start - columns.start) * width..][..whole.len() * width];
                columns_of(of.data, at, step, part.len(), width, offset, run);
            }
            cursor.at[2] += count - 1;
            cursor = of.next(cursor);
            left -= count;
            out = rest;
        }
    }
}

/// `len` elements every `step` of them, into `out` from `offset` on, every `width`.
#[inline(always)]
fn columns_of<C: Compute, T: Reads<C>>(
    data: &[T],
    at: isize,
    step: isize,
    len: usize,
    width: usize,
    offset: usize,
    out: &mut [C],
) {
    /// The same for whole panels of a width that the compiler knows.
    #[inline(always)]
    fn whole<C: Compute, T: Reads<C>, const W: usize>(
        data: &[T],
        at: isize,
        step: isize,
        out: &mut [C],
    ) {
        for (i, to) in out.as_chunks_mut::<W>().0.iter_mut().enumerate() {
            let from = &data[(at + i as isize * step) as usize..][..W];
            for j in 0..W {
                to[j] = from[j].read();
            }
        }
    }
    match (len == width, width) {
        (true, 32) => whole::<C, T, 32>(data, at, step, out),
        (true, 16) => whole::<C, T, 16>(data, at, step, out),
        (true, 14) => whole::<C, T, 14>(data, at, step, out),
        (true, 13) => whole::<C, T, 13>(data, at, step, out),
        (true, 12) => whole::<C, T, 12>(data, at, step, out),
        (true, 6) => whole::<C, T, 6>(data, at, step, out),
        (true, 4) => whole::<C, T, 4>(data, at, step, out),
        _ => {
            for (i, to) in out.chunks_exact_mut(width).enumerate() {
                let from = &data[(at + i as isize * step) as usize..][..len];
                let to = &mut to[offset..offset + len];
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.read());
            }
        }
    }
}

impl<C: Compute, T: Reads<C>> SimdKernel for PackTaps<'_, '_, C, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let (row_len, taps) = (self.of.row_len(), self.taps.clone());
        let mut k = taps.start;
        while k < taps.end {
            let (row, from) = (k / row_len, k % row_len);
            let count = (row_len - from).min(taps.end - k);
            self.part(row, from..from + count, k - taps.start);
            k += count;
        }
    }
}
