//! Products with an operand outside of memory: it comes piece by piece into staging space, in the order of the file, and each piece is
//! multiplied as a matrix in memory is.
//!
//! All threads read a piece, each a part of it, then all multiply it, while the system is told of the next one; or each has pieces of its own, where those are rows. Reads are
//! of 16 KiB and more where the file allows: smaller ones cost more than the copy. A thread of its own that reads ahead into a second space was rejected: with
//! the file in the system's cache it has nothing to wait for and takes a core from those that compute; where it is not, the system reads beside them all the same.
//! Where a piece begins never changes a bit: lines may be cut anywhere, depth where the whole product cuts it.

use std::ops::Range;

use bytemuck::cast_slice_mut;
use tonnage_core::recipe::Elements;
use tonnage_core::workers::{Alone, Workers, for_each_chunk};
use tonnage_core::{Bytes, DType, ErrorKind, Result};

use super::gemm::forced::Level;
use super::gemm::{
    Compute, Finishing, InParts, Matrix, Output, Reads, Rows, Size, Strides, Target, gemm_part,
};
use super::stored::{Side, StoredMatrix};

/// Bytes of a piece, where nothing else decides: two threads find their halves in L2 again.
const PIECE: usize = 1 << 20;
/// Small files come in smaller pieces, down to this.
const SMALLEST: usize = 1 << 16;
/// A piece of a small file is this part of it.
const PART: usize = 16;
/// Bytes that are read at once, where a piece is not one run.
const RUN: usize = 1 << 14;
/// At least that many.
const SHORTEST: usize = 1 << 10;
/// Where lines lie side by side a piece takes that part of a matrix, or less.
const EIGHTH: usize = 8;
/// Bytes of a piece that has to have all of the depth while lines lie side by side.
const DEEP: usize = 8 << 20;
/// Lines below which a piece has only some of the depth: the other operand is read for every piece.
const LINES: usize = 32;
/// Bytes of a long run that one thread reads at once.
const AT_ONCE: usize = 1 << 17;
/// Long lines are kept this much apart, in bytes: powers of two share sets of the cache.
const APART: usize = 64;

/// One side of a product that lies outside of memory, as it lies there.
#[derive(Clone, Copy)]
pub(super) struct Outside<'a> {
    pub from: &'a dyn Elements,
    pub strides: Strides,
    pub left: bool,
}

/// The other side.
#[derive(Clone, Copy)]
pub(super) enum Beside<'a, T> {
    Memory(&'a [T], Strides),
    Outside(&'a dyn Elements, Strides),
}

/// Where the elements of the staged side lie, in its own terms.
#[derive(Clone, Copy)]
struct Lies {
    start: usize,
    batch: isize,
    line: isize,
    depth: isize,
}

/// How it is cut: the most of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub batches: usize,
    pub lines: usize,
    pub depth: usize,
    lines_first: bool,
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

    /// From one line of a piece to the next, or from one step of depth to the next where lines lie side by side.
    fn pitch(&self, run: usize) -> usize {
        match !self.lines_first && self.batches == 1 && run * self.element >= RUN / 2 {
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
fn lines_of(size: Size, left: bool) -> usize {
    if left { size.rows } else { size.cols }
}

/// Staging and packing space of such a product, at any level.
pub(super) fn space(
    size: Size,
    left: bool,
    lines_first: bool,
    dtype: DType,
    threads: usize,
) -> usize {
    let parts = InParts { whole: size, output: dtype, left, lines_first };
    let sizes = (size.batch, lines_of(size, left), size.depth);
    let at = |level: &Level| {
        let unit = parts.unit_of_depth(*level);
        let cut = Cut::of(sizes, lines_first, dtype.size(), unit);
        let part = match left {
            true => Size { rows: cut.lines, ..size },
            false => Size { cols: cut.lines, ..size },
        };
        // Where threads have pieces of their own, the space is cut at cache lines.
        cut.bytes() + parts.scratch_bytes(part, threads) + 192 * threads
    };
    Level::ALL.iter().map(at).max().unwrap_or(0)
}

/// A piece: where it begins and how much it has, of matrices, of their lines, of their depth.
#[derive(Clone, Copy)]
struct Piece {
    batch: (usize, usize),
    lines: (usize, usize),
    depth: (usize, usize),
}

/// A product and how it is cut.
struct Staged<'a, T> {
    of: Outside<'a>,
    beside: Beside<'a, T>,
    whole: Size,
    finish: Option<Finishing<'a>>,
    lies: Lies,
    cut: Cut,
    /// From one run to the next in the file.
    apart: isize,
    /// Whether one matrix serves all of the batch.
    shared: bool,
}

/// The whole product, written to `out`.
pub(super) fn multiply<T, C>(
    of: Outside<'_>,
    beside: Beside<'_, T>,
    whole: Size,
    out: &mut [T],
    finish: Option<Finishing<'_>>,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()>
where
    T: Output<Compute = C> + Reads<C>,
    C: Compute,
{
    let Strides { start, batch, row, col } = of.strides;
    let lies = match of.left {
        true => Lies { start, batch, line: row, depth: col },
        false => Lies { start, batch, line: col, depth: row },
    };
    let (lines, depth, lines_first) = (lines_of(whole, of.left), whole.depth, lies.depth != 1);
    let parts = InParts { whole, output: T::DTYPE, left: of.left, lines_first };
    let (outer, inner) = if lines_first { (depth, lines) } else { (lines, depth) };
    let apart = match lines_first {
        _ if outer == 1 => inner as isize,
        true => lies.depth,
        false => lies.line,
    };
    // One matrix for all of the batch comes once; others come several at a time where they follow each other.
    let shared = whole.batch == 1 || batch == 0;
    let follow = batch == (lines * depth) as isize && apart == inner as isize;
    let unit = parts.unit_of_depth(Level::best());
    let matrices = if shared || !follow { 1 } else { whole.batch };
    let cut = Cut::of((matrices, lines, depth), lines_first, size_of::<T>(), unit);
    let staged = Staged { of, beside, whole, finish, lies, cut, apart, shared };
    let threads = workers.threads();
    // Whole lines of the left operand make whole rows: each thread reads and multiplies its own, and waits for nobody.
    if of.left && whole.batch == 1 && cut.depth == depth && cut.lines >= threads && threads > 1 {
        let own = Staged { cut: Cut { lines: cut.lines / threads, ..cut }, ..staged };
        let part = Size { rows: own.cut.lines, ..whole };
        if threads * (own.cut.bytes() + parts.scratch_bytes(part, 1) + 64) <= scratch.len() {
            return own.by_rows(0..lines, threads, out, scratch, workers);
        }
        return Staged { cut, ..own }.pieces(0..lines, out, scratch, workers);
    }
    staged.pieces(0..lines, out, scratch, workers)
}

impl<T, C> Staged<'_, T>
where
    T: Output<Compute = C> + Reads<C>,
    C: Compute,
{
    /// Rows among so many threads; `out` begins with the first of them.
    fn by_rows(
        &self,
        rows: Range<usize>,
        threads: usize,
        out: &mut [T],
        scratch: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        if threads == 1 {
            return self.pieces(rows, out, scratch, &Alone);
        }
        let half = threads / 2;
        let middle = rows.start + rows.len() * half / threads;
        let (low, high) = out.split_at_mut((middle - rows.start) * self.whole.cols);
        // Parts of the space begin at cache lines, as the whole does.
        let at = scratch.len() * half / threads / 64 * 64;
        let (low_space, high_space) = scratch.split_at_mut(at);
        let (mut first, mut second) = (Ok(()), Ok(()));
        workers.join(
            &mut || first = self.by_rows(rows.start..middle, half, low, low_space, workers),
            &mut || {
                second = self.by_rows(middle..rows.end, threads - half, high, high_space, workers);
            },
        );
        first.and(second)
    }

    /// Those lines, piece by piece; of the left operand `out` begins with their rows, of the right one with the first row.
    fn pieces(
        &self,
        lines: Range<usize>,
        out: &mut [T],
        scratch: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        let (whole, cut, depth) = (self.whole, self.cut, self.whole.depth);
        let lines_first = cut.lines_first;
        if scratch.len() < cut.bytes() {
            let what = format!("{} of workspace are too few", Bytes::of(scratch.len()));
            let help = format!("lend at least {}", Bytes::of(cut.bytes()));
            return Err(ErrorKind::BadArgument { op: "matmul", what, help }.into());
        }
        let (staging, packing) = scratch.split_at_mut(cut.bytes());
        let staging: &mut [T] = cast_slice_mut(staging);
        let counts = (lines.len().div_ceil(cut.lines.max(1)), depth.div_ceil(cut.depth.max(1)));
        let step = if self.shared { whole.batch } else { cut.batches };
        let all = whole.batch.div_ceil(step.max(1)) * counts.0 * counts.1;
        // In the order of the file.
        let piece = |number: usize| {
            let (b, within) = (number / (counts.0 * counts.1), number % (counts.0 * counts.1));
            let (l, d) = match lines_first {
                true => (within % counts.0, within / counts.0),
                false => (within / counts.1, within % counts.1),
            };
            let range = |i: usize, step: usize, all: usize| (i * step, step.min(all - i * step));
            let (first, count) = range(l, cut.lines, lines.len());
            Piece {
                batch: range(b, step, whole.batch),
                lines: (lines.start + first, count),
                depth: range(d, cut.depth, depth),
            }
        };
        for number in 0..all {
            let now = piece(number);
            let (runs, run) = self.runs(&now);
            let (pitch, matrices) = (cut.pitch(run), if self.shared { 1 } else { now.batch.1 });
            let used = &mut staging[..matrices * runs * pitch];
            let all_runs = (matrices * runs, self.apart);
            fill(self.of.from, self.lies.at(&now), all_runs, (run, pitch), used, workers);
            if number + 1 < all {
                let next = piece(number + 1);
                let (runs, run) = self.runs(&next);
                let span = (runs.max(1) - 1) * self.apart.unsigned_abs() + run;
                self.of.from.ahead(self.lies.at(&next) as u64, span);
            }
            let each = if self.shared { 0 } else { (runs * pitch) as isize };
            let first = if self.of.left { lines.start } else { 0 };
            self.piece(&now, used, (pitch as isize, each), first, out, packing, workers)?;
        }
        Ok(())
    }

    /// How many runs of how many elements a matrix of a piece has.
    fn runs(&self, piece: &Piece) -> (usize, usize) {
        match self.cut.lines_first {
            true => (piece.depth.1, piece.lines.1),
            false => (piece.lines.1, piece.depth.1),
        }
    }

    /// Multiplies a piece that is there, in runs `pitch` apart, matrices `each` apart. `out` begins with row `first`.
    #[allow(clippy::too_many_arguments, reason = "what `pieces` knows of one of them")]
    fn piece(
        &self,
        now: &Piece,
        staged: &[T],
        (pitch, each): (isize, isize),
        first: usize,
        out: &mut [T],
        packing: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        let whole = self.whole;
        let (line, step) = if self.cut.lines_first { (1, pitch) } else { (pitch, 1) };
        let corner = match self.of.left {
            true => now.lines.0 * whole.cols,
            false => now.lines.0,
        };
        let at = now.batch.0 * whole.rows * whole.cols + corner;
        let target = Target {
            data: &mut out[at - first * whole.cols..],
            batch_stride: whole.rows * whole.cols,
            rows: Rows::Every(whole.cols),
            add: now.depth.0 > 0,
        };
        // When nothing more is added.
        let last = now.depth.0 + now.depth.1 == whole.depth;
        let end = self.finish.filter(|_| last).map(|f| Finishing { start: f.start + at, ..f });
        let size = Size { batch: now.batch.1, depth: now.depth.1, ..whole };
        if self.of.left {
            let size = Size { rows: now.lines.1, ..size };
            let strides = Strides { start: 0, batch: each, row: line, col: step };
            let (a, b) = (Matrix::left(staged, strides), self.beside.right(now));
            gemm_part(whole, size, &a, &b, target, &end, packing, workers)
        } else {
            let size = Size { cols: now.lines.1, ..size };
            let strides = Strides { start: 0, batch: each, row: step, col: line };
            let (a, b) = (self.beside.left(now), Matrix::right(staged, strides));
            gemm_part(whole, size, &a, &b, target, &end, packing, workers)
        }
    }
}

impl Lies {
    /// Where a piece begins.
    fn at(&self, piece: &Piece) -> usize {
        let steps =
            [(piece.batch.0, self.batch), (piece.lines.0, self.line), (piece.depth.0, self.depth)];
        steps.iter().fold(self.start as isize, |at, (i, step)| at + *i as isize * step) as usize
    }
}

impl<'a, T> Beside<'a, T> {
    /// As the left operand of a piece of the right one.
    fn left(&self, piece: &Piece) -> Side<'a, T> {
        let moved = |s: Strides| from(s, piece, s.col);
        match *self {
            Beside::Memory(data, s) => Side::Memory(Matrix::left(data, moved(s))),
            Beside::Outside(from, s) => Side::Stored(StoredMatrix::left(from, moved(s))),
        }
    }

    /// As the right operand of a piece of the left one.
    fn right(&self, piece: &Piece) -> Side<'a, T> {
        let moved = |s: Strides| from(s, piece, s.row);
        match *self {
            Beside::Memory(data, s) => Side::Memory(Matrix::right(data, moved(s))),
            Beside::Outside(from, s) => Side::Stored(StoredMatrix::right(from, moved(s))),
        }
    }
}

/// From the piece's matrices and depth on.
fn from(strides: Strides, piece: &Piece, depth: isize) -> Strides {
    let moved = piece.batch.0 as isize * strides.batch + piece.depth.0 as isize * depth;
    Strides { start: (strides.start as isize + moved) as usize, ..strides }
}

/// Reads runs that lie `apart` in the file, each to its place in `out`, on all threads.
fn fill<T: bytemuck::Pod + Send>(
    from: &dyn Elements,
    start: usize,
    (runs, apart): (usize, isize),
    (run, pitch): (usize, usize),
    out: &mut [T],
    workers: &dyn Workers,
) {
    if runs <= 1 || (apart == run as isize && pitch == run) {
        let len = (runs * run).min(out.len());
        let at_once = (AT_ONCE / size_of::<T>()).max(1);
        return for_each_chunk(workers, &mut out[..len], at_once, &|i, part| {
            from.read((start + i * at_once) as u64, cast_slice_mut(part));
        });
    }
    let together = (AT_ONCE / (run * size_of::<T>()).max(1)).max(1);
    for_each_chunk(workers, out, pitch * together, &|i, part| {
        for (j, line) in part.chunks_mut(pitch).enumerate() {
            let at = start as isize + (i * together + j) as isize * apart;
            let line = &mut line[..run];
            from.read(at as u64, cast_slice_mut(line));
        }
    });
}
