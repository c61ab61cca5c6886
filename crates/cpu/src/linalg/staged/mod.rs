//! Products with an operand outside of memory: it comes piece by piece into staging space, in the order of the file, and
//! each piece is multiplied as a matrix in memory is.
//!
//! Each thread has pieces of its own, of rows or columns of the result that are its own, and waits for no other; or, where
//! such pieces would be read in runs that are too short, all threads read a piece, each a part of it, then all multiply it.
//! Meanwhile the system is told of the next one. Reads are of 8 KiB and more where the file allows: smaller ones cost more
//! than the copy. A thread of its own that reads ahead into a second space was rejected: with the file in the system's
//! cache it has nothing to wait for and takes a core from those that compute; where it is not, the system reads beside them
//! all the same. Where a piece begins never changes a bit: rows and columns may be cut anywhere, K where the whole product
//! cuts it.
//!
//! Decision: `docs/decisions/products-stage-files.md`.

mod cut;

pub(super) use cut::space;

use std::ops::Range;

use bytemuck::cast_slice_mut;
use tonnage_core::recipe::Elements;
use tonnage_core::{Bytes, ErrorKind, Result};
use tonnage_ops::linalg::Size;

use super::gemm::forced::GemmLevel;
use super::gemm::{
    Area, Compute, GemmOutput, InParts, Matrix, OutputEpilogue, Reads, Strides, gemm_part,
};
use super::stored::{MaybeStored, StoredMatrix};
use crate::workers::{Single, Workers, for_each_chunk};
use cut::{StagedCut, bytes_of, mn_of};

/// Bytes of a long run that one thread reads at once.
const AT_ONCE: usize = 1 << 17;

/// One side of a product that lies outside of memory, as it lies there.
#[derive(Clone, Copy)]
pub(super) struct StoredOperand<'a> {
    pub from: &'a dyn Elements,
    pub strides: Strides,
    pub left: bool,
}

/// The other side.
#[derive(Clone, Copy)]
pub(super) enum OtherOperand<'a, T> {
    Memory(&'a [T], Strides),
    Stored(&'a dyn Elements, Strides),
}

/// Where the elements of the staged side lie, in its own terms.
#[derive(Clone, Copy)]
struct StoredStrides {
    start: usize,
    batch: isize,
    mn_stride: isize,
    k_stride: isize,
}

/// A piece: where it begins and how much it has, of matrices, of their rows or columns, of their K.
#[derive(Clone, Copy)]
struct StagedPiece {
    batch: (usize, usize),
    mn: (usize, usize),
    k: (usize, usize),
}

/// A product and how it is cut.
struct Staged<'a, T> {
    of: StoredOperand<'a>,
    beside: OtherOperand<'a, T>,
    whole: Size,
    epilogue: Option<OutputEpilogue<'a>>,
    strides: StoredStrides,
    cut: StagedCut,
    /// From one run to the next in the file.
    apart: isize,
    /// Whether one matrix serves all of the batch.
    shared: bool,
}

/// The whole product, written to `out`.
pub(super) fn multiply<T, C>(
    of: StoredOperand<'_>,
    beside: OtherOperand<'_, T>,
    whole: Size,
    out: &mut [T],
    epilogue: Option<OutputEpilogue<'_>>,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()>
where
    T: GemmOutput<Compute = C> + Reads<C>,
    C: Compute,
{
    let Strides { start, batch, row, col } = of.strides;
    let strides = match of.left {
        true => StoredStrides { start, batch, mn_stride: row, k_stride: col },
        false => StoredStrides { start, batch, mn_stride: col, k_stride: row },
    };
    let (mn_len, k, mn_major) = (mn_of(whole, of.left), whole.k, strides.k_stride != 1);
    let parts = InParts { whole, output: T::DTYPE, left: of.left, mn_major };
    let (outer, inner) = if mn_major { (k, mn_len) } else { (mn_len, k) };
    let apart = match mn_major {
        _ if outer == 1 => inner as isize,
        true => strides.k_stride,
        false => strides.mn_stride,
    };
    // One matrix for all of the batch comes once; others come several at a time where they follow each other.
    let shared = whole.batch == 1 || batch == 0;
    let follow = batch == (mn_len * k) as isize && apart == inner as isize;
    let unit = parts.k_unit(GemmLevel::best());
    let matrices = if shared || !follow { 1 } else { whole.batch };
    let cut = StagedCut::of((matrices, mn_len, k), mn_major, size_of::<T>(), unit);
    let staged = Staged { of, beside, whole, epilogue, strides, cut, apart, shared };
    let (area, threads) = (&mut Area::all(out, whole.cols), workers.threads());
    // Rows of a batch lie in each of its matrices, columns in all.
    let apart = if of.left { whole.batch == 1 } else { shared };
    let own = cut.of_thread(of.left, (mn_len, k), unit, threads).filter(|_| apart);
    match own.filter(|own| bytes_of(*own, &parts, threads, 1) <= scratch.len()) {
        Some(cut) => Staged { cut, ..staged }.by_thread(0..mn_len, threads, area, scratch, workers),
        None => staged.pieces(0..mn_len, area, scratch, workers),
    }
}

impl<T, C> Staged<'_, T>
where
    T: GemmOutput<Compute = C> + Reads<C>,
    C: Compute,
{
    /// Rows or columns of the result, divided among `threads` threads.
    fn by_thread(
        &self,
        mn_range: Range<usize>,
        threads: usize,
        out: &mut Area<'_, T>,
        scratch: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        if threads == 1 {
            return self.pieces(mn_range, out, scratch, &Single(workers));
        }
        let half = threads / 2;
        let middle = mn_range.start + mn_range.len() * half / threads;
        let (mut low, mut high) = match self.of.left {
            true => out.split_at_row(middle),
            false => out.split_at_col(middle),
        };
        // Parts of the space begin at cache lines, as the whole does.
        let at = scratch.len() * half / threads / 64 * 64;
        let (low_space, high_space) = scratch.split_at_mut(at);
        let (mut first, mut second) = (Ok(()), Ok(()));
        let (before, after) = (mn_range.start..middle, middle..mn_range.end);
        workers.join(
            &mut || first = self.by_thread(before.clone(), half, &mut low, low_space, workers),
            &mut || {
                let rest = threads - half;
                second = self.by_thread(after.clone(), rest, &mut high, high_space, workers);
            },
        );
        first.and(second)
    }

    /// Those rows or columns, piece by piece.
    fn pieces(
        &self,
        mn_range: Range<usize>,
        out: &mut Area<'_, T>,
        scratch: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        let (whole, cut, k) = (self.whole, self.cut, self.whole.k);
        let mn_major = cut.mn_major;
        if scratch.len() < cut.bytes() {
            let what = format!("{} of workspace are too few", Bytes::of(scratch.len()));
            let help = format!("lend at least {}", Bytes::of(cut.bytes()));
            return Err(ErrorKind::BadArgument { op: "matmul", what, help }.into());
        }
        let (staging, packing) = scratch.split_at_mut(cut.bytes());
        let staging: &mut [T] = cast_slice_mut(staging);
        let counts = (mn_range.len().div_ceil(cut.mn.max(1)), k.div_ceil(cut.k.max(1)));
        let step = if self.shared { whole.batch } else { cut.batches };
        let all = whole.batch.div_ceil(step.max(1)) * counts.0 * counts.1;
        // In the order of the file.
        let piece = |number: usize| {
            let (b, within) = (number / (counts.0 * counts.1), number % (counts.0 * counts.1));
            let (mn_index, k_index) = match mn_major {
                true => (within % counts.0, within / counts.0),
                false => (within / counts.1, within % counts.1),
            };
            let range = |i: usize, step: usize, all: usize| (i * step, step.min(all - i * step));
            let (first, count) = range(mn_index, cut.mn, mn_range.len());
            StagedPiece {
                batch: range(b, step, whole.batch),
                mn: (mn_range.start + first, count),
                k: range(k_index, cut.k, k),
            }
        };
        for number in 0..all {
            let now = piece(number);
            let (runs, run) = self.runs(&now);
            let (pitch, matrices) = (cut.pitch(run), if self.shared { 1 } else { now.batch.1 });
            let used = &mut staging[..matrices * runs * pitch];
            let all_runs = (matrices * runs, self.apart);
            fill(self.of.from, self.strides.at(&now), all_runs, (run, pitch), used, workers)?;
            if number + 1 < all {
                let next = piece(number + 1);
                let (runs, run) = self.runs(&next);
                let span = (runs.max(1) - 1) * self.apart.unsigned_abs() + run;
                self.of.from.ahead(self.strides.at(&next) as u64, span);
            }
            let each = if self.shared { 0 } else { (runs * pitch) as isize };
            self.piece(&now, used, (pitch as isize, each), out, packing, workers)?;
        }
        Ok(())
    }

    /// How many runs of how many elements a matrix of a piece has.
    fn runs(&self, piece: &StagedPiece) -> (usize, usize) {
        match self.cut.mn_major {
            true => (piece.k.1, piece.mn.1),
            false => (piece.mn.1, piece.k.1),
        }
    }

    /// Multiplies a piece that is there, in runs `pitch` apart, matrices `each` apart.
    fn piece(
        &self,
        now: &StagedPiece,
        staged: &[T],
        (pitch, each): (isize, isize),
        out: &mut Area<'_, T>,
        packing: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        let whole = self.whole;
        let (mn_stride, k_stride) = if self.cut.mn_major { (1, pitch) } else { (pitch, 1) };
        let (row, col) = if self.of.left { (now.mn.0, 0) } else { (0, now.mn.0) };
        let row = now.batch.0 * whole.rows + row;
        let at = row * whole.cols + col;
        let to = (out, (row, col), now.k.0 > 0);
        // When nothing more is added.
        let last = now.k.0 + now.k.1 == whole.k;
        let end =
            self.epilogue.filter(|_| last).map(|f| OutputEpilogue { start: f.start + at, ..f });
        let size = Size { batch: now.batch.1, k: now.k.1, ..whole };
        if self.of.left {
            let size = Size { rows: now.mn.1, ..size };
            let strides = Strides { start: 0, batch: each, row: mn_stride, col: k_stride };
            let (a, b) = (Matrix::left(staged, strides), self.beside.right(now));
            gemm_part(whole, size, &a, b.operand(), to, &end, packing, workers)
        } else {
            let size = Size { cols: now.mn.1, ..size };
            let strides = Strides { start: 0, batch: each, row: k_stride, col: mn_stride };
            let (a, b) = (self.beside.left(now), Matrix::right(staged, strides));
            gemm_part(whole, size, a.operand(), &b, to, &end, packing, workers)
        }
    }
}

impl StoredStrides {
    /// Where a piece begins.
    fn at(&self, piece: &StagedPiece) -> usize {
        let steps =
            [(piece.batch.0, self.batch), (piece.mn.0, self.mn_stride), (piece.k.0, self.k_stride)];
        steps.iter().fold(self.start as isize, |at, (i, step)| at + *i as isize * step) as usize
    }
}

impl<'a, T> OtherOperand<'a, T> {
    /// As the left operand of a piece of the right one.
    fn left(&self, piece: &StagedPiece) -> MaybeStored<'a, T> {
        let moved = |s: Strides| from(s, piece, s.col);
        match *self {
            OtherOperand::Memory(data, s) => MaybeStored::Memory(Matrix::left(data, moved(s))),
            OtherOperand::Stored(from, s) => {
                MaybeStored::Stored(StoredMatrix::left(from, moved(s)))
            }
        }
    }

    /// As the right operand of a piece of the left one.
    fn right(&self, piece: &StagedPiece) -> MaybeStored<'a, T> {
        let moved = |s: Strides| from(s, piece, s.row);
        match *self {
            OtherOperand::Memory(data, s) => MaybeStored::Memory(Matrix::right(data, moved(s))),
            OtherOperand::Stored(from, s) => {
                MaybeStored::Stored(StoredMatrix::right(from, moved(s)))
            }
        }
    }
}

/// From the piece's matrices and K on.
fn from(strides: Strides, piece: &StagedPiece, k_stride: isize) -> Strides {
    let moved = piece.batch.0 as isize * strides.batch + piece.k.0 as isize * k_stride;
    Strides { start: (strides.start as isize + moved) as usize, ..strides }
}

/// Reads runs that lie `apart` in the file, each to its position in `out`, on all threads.
fn fill<T: bytemuck::Pod + Send>(
    from: &dyn Elements,
    start: usize,
    (runs, apart): (usize, isize),
    (run, pitch): (usize, usize),
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    if runs <= 1 || (apart == run as isize && pitch == run) {
        let len = (runs * run).min(out.len());
        let at_once = (AT_ONCE / size_of::<T>()).max(1);
        return for_each_chunk(workers, &mut out[..len], at_once, &|i, part| {
            from.read((start + i * at_once) as u64, cast_slice_mut(part));
        });
    }
    let together = (AT_ONCE / (run * size_of::<T>()).max(1)).max(1);
    for_each_chunk(workers, out, pitch * together, &|i, part| {
        for (j, row) in part.chunks_mut(pitch).enumerate() {
            let at = start as isize + (i * together + j) as isize * apart;
            let row = &mut row[..run];
            from.read(at as u64, cast_slice_mut(row));
        }
    })
}
