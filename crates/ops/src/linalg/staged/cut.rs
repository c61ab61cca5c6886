//! How an operand outside of memory is cut into pieces, and the space that those take.

use tonnage_core::DType;

use super::super::gemm::forced::Level;
use super::super::gemm::{InParts, Size};

/// Bytes of a piece, where nothing else decides: two threads find their halves in L2 again.
const PIECE: usize = 1 << 20;
/// Small files come in smaller pieces, down to this.
const SMALLEST: usize = 1 << 16;
/// A piece of a small file is this part of it.
const PART: usize = 16;
/// Bytes that are read at once, where a piece is not one run.
const RUN: usize = 1 << 14;
/// The same where a thread has pieces of its own: its copy of half a line stays in its caches.
const OWN_RUN: usize = 1 << 13;
/// At least that many.
const SHORTEST: usize = 1 << 10;
/// Where lines lie side by side a piece takes that part of a matrix, or less.
const EIGHTH: usize = 8;
/// Bytes of a piece that has to have all of the depth while lines lie side by side.
const DEEP: usize = 8 << 20;
/// Lines below which a piece has only some of the depth: the other operand is read for every piece.
const LINES: usize = 32;
/// Long lines are kept this much apart, in bytes: powers of two share sets of the cache.
const APART: usize = 64;

/// How it is cut: the most of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub batches: usize,
    pub lines: usize,
    pub depth: usize,
    pub lines_first: bool,
    element: usize,
}

impl Cut {
    /// Of matrices of `lines` by `depth` elements of so many bytes; `unit` is where depth may be cut, if it may.
    pub fn of(
        (batch, lines, depth): (usize, usize, usize),
        lines_first: bool,
        element: usize,
        unit: Option<usize>,
    ) -> Cut {
        let matrix = lines.saturating_mul(depth).saturating_mul(element).max(1);
        let room = (matrix.saturating_mul(batch) / PART).clamp(SMALLEST, PIECE);
        let cut = |batches, lines, depth| Cut { batches, lines, depth, lines_first, element };
        if matrix <= room {
            return cut((room / matrix).clamp(1, batch.max(1)), lines, depth);
        }
        let step = |lines: usize, unit: usize| {
            (room / (lines * element).max(1) / unit * unit).max(unit).min(depth)
        };
        match (lines_first, unit) {
            (false, Some(unit)) if room / (depth * element) < LINES && depth > unit => {
                let lines = lines.min(LINES);
                cut(1, lines, step(lines, unit))
            }
            (false, _) => cut(1, (room / (depth * element)).clamp(1, lines), depth),
            (true, Some(unit)) => {
                // Shorter runs of a small matrix: a piece has as many as the depth is cut by.
                let run = (matrix / EIGHTH / unit.min(depth).max(1)).clamp(SHORTEST, RUN);
                let runs = (lines * element).div_ceil(run).max(1);
                let lines = lines.div_ceil(runs).next_multiple_of(64).min(lines);
                cut(1, lines, step(lines, unit))
            }
            (true, None) => cut(1, (DEEP / (depth * element)).max(64).min(lines), depth),
        }
    }

    /// The same for pieces that each of several threads has for itself, of lines of its own, so that none waits for another: where
    /// those are whole rows of the result, or runs that are long enough to be read by themselves.
    pub fn of_thread(
        self,
        left: bool,
        (lines, depth): (usize, usize),
        unit: Option<usize>,
        threads: usize,
    ) -> Option<Cut> {
        if threads < 2 || self.batches > 1 {
            return None;
        }
        if left {
            let whole = self.depth == depth && self.lines >= threads;
            return whole.then_some(Cut { lines: self.lines / threads, ..self });
        }
        let (unit, own) = (unit?, lines / threads);
        if !self.lines_first || own * self.element < OWN_RUN {
            return None;
        }
        let runs = (own * self.element).div_ceil(OWN_RUN);
        let lines = own.div_ceil(runs).next_multiple_of(64);
        let deep = (PIECE / (lines * self.element) / unit * unit).max(unit).min(depth);
        Some(Cut { lines, depth: deep, ..self })
    }

    /// From one line of a piece to the next, or from one step of depth to the next where lines lie side by side.
    pub fn pitch(&self, run: usize) -> usize {
        match self.batches == 1 && run * self.element >= RUN / 2 {
            true => run + APART / self.element,
            false => run,
        }
    }

    /// Bytes of staging, from cache line to cache line.
    pub fn bytes(&self) -> usize {
        let (outer, run) = match self.lines_first {
            true => (self.depth, self.lines),
            false => (self.lines, self.depth),
        };
        (self.batches * outer * self.pitch(run) * self.element).next_multiple_of(64)
    }
}

/// How many lines that side has.
pub(super) fn lines_of(size: Size, left: bool) -> usize {
    if left { size.rows } else { size.cols }
}

/// Staging and packing space of pieces of their own for so many threads: of one piece for all of them where that is 1.
pub(super) fn bytes_of(cut: Cut, parts: &InParts, own: usize, each: usize) -> usize {
    let part = match parts.left {
        true => Size { rows: cut.lines, ..parts.whole },
        false => Size { cols: cut.lines, ..parts.whole },
    };
    // The space is halved at cache lines until each thread has its own: less than two of them are lost.
    own * (cut.bytes() + parts.scratch_bytes(part, each) + 128)
}

/// Staging and packing space of such a product, at any level.
pub(in super::super) fn space(
    size: Size,
    left: bool,
    lines_first: bool,
    dtype: DType,
    threads: usize,
) -> usize {
    let parts = InParts { whole: size, output: dtype, left, lines_first };
    let lines = lines_of(size, left);
    let at = |level: &Level| {
        let unit = parts.unit_of_depth(*level);
        let of = |batch| Cut::of((batch, lines, size.depth), lines_first, dtype.size(), unit);
        let own = of(1).of_thread(left, (lines, size.depth), unit, threads);
        let own = own.map_or(0, |own| bytes_of(own, &parts, threads, 1));
        // One matrix for all of the batch comes by itself.
        own.max(bytes_of(of(1), &parts, 1, threads)).max(bytes_of(
            of(size.batch),
            &parts,
            1,
            threads,
        ))
    };
    Level::ALL.iter().map(at).max().unwrap_or(0)
}
