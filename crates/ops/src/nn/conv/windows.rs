//! The windows of an image as an operand of the matmul core: packed from where the image lies, a strip at a time.
//!
//! Along width, taps and their channels mostly lie one after the other in memory, so that a window is copied in as
//! many runs as it has rows. What lies in padding is zero.

use std::ops::Range;

use crate::linalg::gemm::{Compute, Reads, pack_with};
use crate::nn::window::Pixels;
use crate::simd::{self, Isa, Kernel};

/// Windows along one axis: tap `t` of window `i` lies at `i * step + first + t * tap`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slide {
    /// How many windows.
    pub lines: usize,
    pub step: usize,
    /// How many taps.
    pub taps: usize,
    pub first: isize,
    pub tap: isize,
}

impl Slide {
    /// A window for each pixel.
    pub fn pixels(count: usize) -> Slide {
        Slide { lines: count, step: 1, taps: 1, first: 0, tap: 0 }
    }

    #[inline(always)]
    fn place(&self, line: usize, tap: usize) -> isize {
        (line * self.step) as isize + self.first + tap as isize * self.tap
    }

    /// Where a tap lies on an axis of length `len`, if it does.
    #[inline(always)]
    fn inside(&self, line: usize, tap: usize, len: usize) -> Option<isize> {
        let at = self.place(line, tap);
        (at >= 0 && at < len as isize).then_some(at)
    }

    /// The taps of a window that lie on an axis of length `len`; only where taps go forward.
    #[inline(always)]
    fn taps_inside(&self, line: usize, len: usize) -> Range<usize> {
        let (first, tap) = (self.place(line, 0), self.tap.max(1));
        let from = |edge: isize| ((edge - first).max(0) + tap - 1) / tap;
        let end = from(len as isize) as usize;
        (from(0) as usize).min(self.taps)..end.min(self.taps)
    }
}

/// The windows of an image.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a, T> {
    data: &'a [T],
    pixels: Pixels,
    slides: [Slide; 3],
    /// Channels of one group.
    channels: usize,
    /// Taps along width lie side by side, with their channels.
    joined: bool,
}

/// Which window.
#[derive(Clone, Copy)]
struct Cursor {
    batch: usize,
    at: [usize; 3],
}

impl<'a, T> Windows<'a, T> {
    pub fn new(
        data: &'a [T],
        pixels: Pixels,
        slides: [Slide; 3],
        channels: usize,
    ) -> Windows<'a, T> {
        let across = slides[2].tap * pixels.strides[2];
        let joined = pixels.channel == 1
            && (slides[2].taps == 1 || slides[2].tap > 0 && across == channels as isize);
        Windows { data, pixels, slides, channels, joined }
    }

    fn cursor(&self, line: usize) -> Cursor {
        let [z, y, x] = self.slides.map(|slide| slide.lines.max(1));
        let (rest, at_x) = (line / x, line % x);
        Cursor { batch: rest / y / z, at: [rest / y % z, rest % y, at_x] }
    }

    #[inline(always)]
    fn next(&self, mut cursor: Cursor) -> Cursor {
        for axis in (0..3).rev() {
            cursor.at[axis] += 1;
            if cursor.at[axis] < self.slides[axis].lines {
                return cursor;
            }
            cursor.at[axis] = 0;
        }
        cursor.batch += 1;
        cursor
    }

    /// Elements of one row of taps.
    #[inline(always)]
    fn row_len(&self) -> usize {
        self.slides[2].taps * self.channels
    }

    /// Where the first pixel of row `row` of a window's taps would lie, had the image that column; `None` in padding.
    #[inline(always)]
    fn row_start(&self, group: usize, cursor: &Cursor, row: usize) -> Option<isize> {
        let taps = self.slides[1].taps;
        let (pixels, lengths) = (&self.pixels, &self.pixels.lengths);
        let z = self.slides[0].inside(cursor.at[0], row / taps, lengths[0])?;
        let y = self.slides[1].inside(cursor.at[1], row % taps, lengths[1])?;
        let channel = (group * self.channels) as isize * pixels.channel;
        let image = pixels.start as isize + cursor.batch as isize * pixels.next + channel;
        Some(image + z * pixels.strides[0] + y * pixels.strides[1])
    }
}

/// Copies, widening where it has to.
#[inline(always)]
fn copy<C: Compute, T: Reads<C>>(from: &[T], to: &mut [C]) {
    /// A vector or two at every level.
    const RUN: usize = 16;
    let (from, from_tail) = from.as_chunks::<RUN>();
    let (to, to_tail) = to.as_chunks_mut::<RUN>();
    for (to, from) in to.iter_mut().zip(from) {
        for i in 0..RUN {
            to[i] = from[i].read();
        }
    }
    to_tail.iter_mut().zip(from_tail).for_each(|(to, from)| *to = from.read());
}

impl<T> Windows<'_, T> {
    /// As [`Operand::pack`](crate::linalg::gemm::Operand::pack): a line for each window.
    pub fn pack<C: Compute>(
        &self,
        group: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        width: usize,
        out: &mut [C],
    ) where
        T: Reads<C>,
    {
        if width == 1 {
            let first = self.cursor(lines.start);
            return simd::level().run(Lines { of: self, group, first, depth, out });
        }
        // A few windows beside many filters.
        pack_with(lines.len(), depth.len(), width, out, |line, k| {
            self.element(group, &self.cursor(lines.start + line), depth.start + k)
        });
    }

    /// The same with lines and depth swapped: a line for each tap and channel.
    pub fn pack_turned<C: Compute>(
        &self,
        group: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        width: usize,
        out: &mut [C],
    ) where
        T: Reads<C>,
    {
        let panels = out.chunks_exact_mut((width * depth.len()).max(1));
        for (first, out) in lines.clone().step_by(width.max(1)).zip(panels) {
            let lines = first..lines.end.min(first + width);
            if lines.len() < width {
                out.fill(C::ZERO);
            }
            simd::level().run(Steps { of: self, group, lines, depth: depth.clone(), width, out });
        }
    }

    fn element<C: Compute>(&self, group: usize, cursor: &Cursor, k: usize) -> C
    where
        T: Reads<C>,
    {
        let (row, within) = (k / self.row_len(), k % self.row_len());
        let (tap, channel) = (within / self.channels, within % self.channels);
        let start = self.row_start(group, cursor, row);
        let x = self.slides[2].inside(cursor.at[2], tap, self.pixels.lengths[2]);
        match (start, x) {
            (Some(start), Some(x)) => {
                let at =
                    start + x * self.pixels.strides[2] + channel as isize * self.pixels.channel;
                self.data[at as usize].read()
            }
            _ => C::ZERO,
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

/// Windows one after the other.
struct Lines<'a, 'w, C, T> {
    of: &'a Windows<'w, T>,
    group: usize,
    first: Cursor,
    depth: Range<usize>,
    out: &'a mut [C],
}

impl<C: Compute, T: Reads<C>> Kernel for Lines<'_, '_, C, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Lines { of, group, first, depth, out } = self;
        let row_len = of.row_len();
        if depth.is_empty() || row_len == 0 {
            return;
        }
        let (top, from) = (depth.start / row_len, depth.start % row_len);
        let mut cursor = first;
        for out in out.chunks_exact_mut(depth.len()) {
            let (mut row, mut from, mut rest) = (top, from, out);
            while !rest.is_empty() {
                let count = (row_len - from).min(rest.len());
                let (piece, more) = std::mem::take(&mut rest).split_at_mut(count);
                match of.row_start(group, &cursor, row) {
                    Some(start) => of.row(start, cursor.at[2], from..from + count, piece),
                    None => piece.fill(C::ZERO),
                }
                (row, from, rest) = (row + 1, 0, more);
            }
            cursor = of.next(cursor);
        }
    }
}

/// Windows side by side: for each, some taps and channels.
struct Steps<'a, 'w, C, T> {
    of: &'a Windows<'w, T>,
    group: usize,
    lines: Range<usize>,
    depth: Range<usize>,
    width: usize,
    out: &'a mut [C],
}

impl<C: Compute, T: Reads<C>> Steps<'_, '_, C, T> {
    /// The same part of one row of taps, for every window.
    #[inline(always)]
    fn part(&mut self, row: usize, part: Range<usize>, offset: usize) {
        let (of, width) = (self.of, self.width);
        let slide = &of.slides[2];
        let (len, stride) = (of.pixels.lengths[2], of.pixels.strides[2]);
        let mut cursor = of.cursor(self.depth.start);
        let mut left = self.depth.len();
        let mut out = &mut self.out[..];
        while left > 0 {
            // Windows along one row of the image.
            let count = (slide.lines - cursor.at[2]).min(left);
            let (run, rest) = std::mem::take(&mut out).split_at_mut(count * width);
            let start = of.row_start(self.group, &cursor, row);
            let columns = cursor.at[2]..cursor.at[2] + count;
            // Of these, the ones whose taps all lie in the image.
            let (first_tap, last_tap) = (part.start / of.channels, (part.end - 1) / of.channels);
            let whole = match start {
                Some(_) if of.joined => {
                    let (low, high) = (slide.place(0, first_tap), slide.place(0, last_tap));
                    let step = slide.step as isize;
                    let from = ((-low).max(0) + step - 1) / step;
                    let to = ((len as isize - high).max(0) + step - 1) / step;
                    let from = (from as usize).clamp(columns.start, columns.end);
                    from..(to as usize).clamp(from, columns.end)
                }
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

impl<C: Compute, T: Reads<C>> Kernel for Steps<'_, '_, C, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let (row_len, lines) = (self.of.row_len(), self.lines.clone());
        let mut k = lines.start;
        while k < lines.end {
            let (row, from) = (k / row_len, k % row_len);
            let count = (row_len - from).min(lines.end - k);
            self.part(row, from..from + count, k - lines.start);
            k += count;
        }
    }
}
