//! Bands of an image: the pixels that some rows of windows see, copied once, with their padding.
//!
//! Windows overlap. In a band each pixel is there once and every window sees a run of each of its rows, so that
//! the product with what windows gave needs no copy of windows at all.
//!
//! Decision: `docs/decisions/convolution-bands.md`.

use std::ops::Range;

use super::slide::Slide;
use super::widen::copy;
use super::windows::ImageWindows;
use crate::linalg::gemm::{Band, Compute, Packs, Reads, StridePattern};

/// The most bytes of a band, and of as many rows of what windows gave, where both stay in L1.
const NEAR: usize = 32 << 10;

/// Windows of a band, at least, for which that is worth it: sums are loaded and stored for each.
const ENOUGH: usize = 192;

/// Windows of a band otherwise.
const WINDOWS: usize = 512;

/// The most windows of a band beside filters that stay packed, and beside some that are packed anew for each band.
const FEW: usize = 256;

const MANY: usize = 1024;

/// The fewest windows side by side for which tiles of one row of them are high enough.
const SIDE_BY_SIDE: usize = 6;

/// Filters beside a band: the most bytes, for a part of L2, the most columns at once, and the most steps along K.
const FILTERS: (usize, usize, usize) = (1 << 20, 512, 2048);

/// The most bytes of a band.
const MOST: usize = 512 << 10;

/// Rows of windows, along with their rows of taps, as a band has them.
#[derive(Debug, Clone, Copy)]
struct Lying {
    /// Elements of a row of pixels.
    row: usize,
    /// Rows of windows of one image (or of one plane of it).
    plane: usize,
    /// Rows of pixels from one row of windows to the next, from one row of taps to the next, and that a window covers.
    step: usize,
    tap: usize,
    span: usize,
    /// Pixels from one window to the next.
    across: usize,
}

impl Lying {
    /// For some rows of taps; `None` where a band would leave pixels out, or hold some that no window sees.
    fn of(slides: &[Slide; 3], channels: usize, taps: usize) -> Option<Lying> {
        let [z, y, x] = slides;
        if z.taps == 1 && y.taps == 1 && x.taps == 1 && channels > 0 {
            // A window sees one pixel: a band has those alone, whatever lies between them.
            let row = x.windows.checked_mul(channels)?;
            return Some(Lying { row, plane: y.windows, step: 1, tap: 0, span: 1, across: 1 });
        }
        let (tap, width) = (y.tap.max(0) as usize, x.windows.checked_sub(1)? * x.step + x.taps);
        let span = taps.checked_sub(1)? * tap + 1;
        let fits = z.taps == 1
            && y.tap >= 0
            && y.step <= span
            && x.step <= x.taps
            && (x.taps == 1 || x.tap == 1)
            && channels > 0;
        let row = width.checked_mul(channels)?;
        fits.then_some(Lying { row, plane: y.windows, step: y.step, tap, span, across: x.step })
    }

    /// Elements for that many rows of windows, wherever they start.
    fn space(&self, rows: usize) -> usize {
        let planes = (rows + self.plane - 1).div_ceil(self.plane.max(1)) + 1;
        (rows * self.step + planes * (self.span - self.step)) * self.row
    }

    /// From one row of windows to the next, the first of them being a plane's row number `at`.
    fn windows(&self, step: usize, run: usize, at: usize) -> StridePattern {
        StridePattern {
            step,
            run,
            next: self.step * self.row,
            first: self.plane - at,
            period: self.plane,
            leap: (self.span - self.step) * self.row,
        }
    }
}

/// How taps and channels are packed along windows, beside values of `outputs` channels. From sizes alone: the cut along
/// windows decides the bits of a sum.
pub(super) fn transposed(
    slides: &[Slide; 3],
    images: usize,
    (channels, outputs): (usize, usize),
    element: usize,
) -> Packs {
    let [_, y, x] = slides;
    let strips = Packs::Strips { unit: 1, row: usize::MAX };
    let Some(lying) = Lying::of(slides, channels, y.taps) else { return strips };
    let windows = x.windows;
    let near = NEAR / ((lying.step * lying.row + windows * outputs) * element).max(1);
    let rows = match near * windows >= ENOUGH {
        true => near,
        false => WINDOWS.div_ceil(windows.max(1)),
    };
    let fits = |rows: &usize| lying.space(*rows) * element <= MOST;
    let Some(rows) = (1..=rows).rev().find(fits) else { return strips };
    let (deep, row) = (rows * windows, x.taps * channels);
    let space = lying.space(rows.min(all_rows(slides, images)));
    Packs::Band { k_block: deep, tall: usize::MAX, row, space, along: 1 }
}

/// Rows of windows of all images.
fn all_rows(slides: &[Slide; 3], images: usize) -> usize {
    images.saturating_mul(slides[0].windows).saturating_mul(slides[1].windows)
}

/// How windows are packed along their taps and channels, beside filters that give `outputs` channels; `None` where a band
/// would be too large, or too small for filters to be packed for it.
pub(super) fn forward(
    slides: &[Slide; 3],
    images: usize,
    (channels, outputs): (usize, usize),
    element: usize,
) -> Option<Packs> {
    let [_, y, x] = slides;
    let (windows, row) = (x.windows, x.taps * channels);
    let (bytes, widest, deepest) = FILTERS;
    let wide = outputs.next_multiple_of(32).min(widest) * element;
    let most = (bytes / wide.max(1)).min(deepest) / row.max(1);
    // Rows of taps, evened out.
    let blocks = y.taps.div_ceil(most.min(y.taps).max(1)).max(1);
    let taps = y.taps.div_ceil(blocks);
    let lying = Lying::of(slides, channels, taps).filter(|_| most > 0)?;
    // They may start and end within a row.
    let fits = |rows: &usize| lying.space(*rows + 1) * element <= MOST;
    let wanted = if blocks == 1 && outputs <= widest { FEW } else { MANY };
    let rows = (1..=wanted.div_ceil(windows.max(1))).rev().find(fits)?;
    let (deep, tall) = (taps * row, rows * windows);
    let space = lying.space(rows.min(all_rows(slides, images)) + 1);
    let enough = windows >= SIDE_BY_SIDE && 2 * tall >= wanted;
    enough.then_some(Packs::Band { k_block: deep, tall, row: windows, space, along: row })
}

impl<T> ImageWindows<'_, T> {
    /// As [`GemmOperand::band`](crate::linalg::gemm::GemmOperand::band), a row for each tap and channel, along windows.
    pub fn band_transposed<C: Compute>(
        &self,
        group: usize,
        tap_range: Range<usize>,
        k_range: Range<usize>,
        out: &mut [C],
    ) -> Option<Band>
    where
        T: Reads<C>,
    {
        let (windows, row_len) = (self.slides[2].windows, self.row_len());
        let rows = k_range.start / windows..k_range.end.div_ceil(windows);
        let taps = tap_range.start / row_len..tap_range.end.div_ceil(row_len);
        let lying = self.rows(group, rows.clone(), taps.clone(), out)?;
        Some(Band {
            origin: taps.start * row_len,
            mn: StridePattern::even(1, row_len, lying.tap * lying.row),
            k: lying.windows(lying.across * self.channels, windows, rows.start % lying.plane),
        })
    }

    /// As [`GemmOperand::band`](crate::linalg::gemm::GemmOperand::band), a row for each window.
    pub fn band<C: Compute>(
        &self,
        group: usize,
        window_range: Range<usize>,
        k_range: Range<usize>,
        out: &mut [C],
    ) -> Option<Band>
    where
        T: Reads<C>,
    {
        let (windows, row_len) = (self.slides[2].windows, self.row_len());
        let rows = window_range.start / windows..window_range.end.div_ceil(windows);
        let taps = k_range.start / row_len..k_range.end / row_len;
        let lying = self.rows(group, rows.clone(), taps, out)?;
        let step = lying.across * self.channels;
        Some(Band {
            origin: rows.start * windows,
            mn: lying.windows(step, windows, rows.start % lying.plane),
            k: StridePattern::even(1, row_len, lying.tap * lying.row),
        })
    }

    /// Copies what some rows of windows see through some rows of their taps, where the image lies so.
    fn rows<C: Compute>(
        &self,
        group: usize,
        rows: Range<usize>,
        taps: Range<usize>,
        out: &mut [C],
    ) -> Option<Lying>
    where
        T: Reads<C>,
    {
        let lying = Lying::of(&self.slides, self.channels, taps.len())?;
        let evenly = self.joined && self.pixels.strides[2] == self.channels as isize;
        if !evenly || lying.space(rows.len()) > out.len() {
            return None;
        }
        let [z, y, x] = &self.slides;
        let lengths = &self.pixels.lengths;
        if lying.across < x.step || lying.step < y.step {
            self.single(group, rows, out);
            return Some(lying);
        }
        // Pixels of a row before and after the image.
        let (first, channels) = (x.place(0, 0), self.channels as isize);
        let before = ((-first).max(0) * channels).min(lying.row as isize);
        let end = (lengths[2] as isize - first).max(0) * channels;
        let inside = before as usize..end.clamp(before, lying.row as isize) as usize;
        let mut out = out.chunks_exact_mut(lying.row);
        let mut at = rows.start;
        while at < rows.end {
            // Rows of windows of one plane.
            let (plane, plane_row) = (at / lying.plane, at % lying.plane);
            let count = (lying.plane - plane_row).min(rows.end - at);
            let (image, depth) = (plane / z.windows, z.inside(plane % z.windows, 0, lengths[0]));
            let top = y.place(plane_row, taps.start);
            let start = self.start_of(group, image);
            for (i, out) in out.by_ref().take((count - 1) * lying.step + lying.span).enumerate() {
                let height = top + i as isize;
                let Some(depth) = depth.filter(|_| (0..lengths[1] as isize).contains(&height))
                else {
                    out.fill(C::ZERO);
                    continue;
                };
                out[..inside.start].fill(C::ZERO);
                out[inside.end..].fill(C::ZERO);
                let strides = &self.pixels.strides;
                let from = start + depth * strides[0] + height * strides[1] + first * strides[2];
                if !inside.is_empty() {
                    let from = (from + inside.start as isize) as usize;
                    copy(&self.data[from..][..inside.len()], &mut out[inside.clone()]);
                }
            }
            at += count;
        }
        Some(lying)
    }

    /// Copies the one pixel that each window of some rows sees.
    fn single<C: Compute>(&self, group: usize, rows: Range<usize>, out: &mut [C])
    where
        T: Reads<C>,
    {
        let ([z, y, x], lengths) = (&self.slides, &self.pixels.lengths);
        let channels = self.channels;
        let seen = |row: usize| {
            let (plane, plane_row) = (row / y.windows, row % y.windows);
            let depth = z.inside(plane % z.windows, 0, lengths[0])?;
            let height = y.inside(plane_row, 0, lengths[1])?;
            let strides = &self.pixels.strides;
            let image = self.start_of(group, plane / z.windows);
            Some(image + depth * strides[0] + height * strides[1])
        };
        let inside = x.whole(0..1, lengths[2], 0..x.windows);
        for (row, out) in rows.zip(out.chunks_exact_mut(x.windows * channels)) {
            let Some(start) = seen(row) else {
                out.fill(C::ZERO);
                continue;
            };
            out[..inside.start * channels].fill(C::ZERO);
            out[inside.end * channels..].fill(C::ZERO);
            for (window, out) in out.chunks_exact_mut(channels).enumerate() {
                if inside.contains(&window) {
                    let at = (start + x.place(window, 0) * self.pixels.strides[2]) as usize;
                    copy(&self.data[at..][..channels], out);
                }
            }
        }
    }
}
