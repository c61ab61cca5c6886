//! How an operand outside of memory is cut into pieces, and the space that those take.

use tonnage_core::DType;
use tonnage_ops::linalg::Size;

use super::super::gemm::InParts;
use super::super::gemm::forced::GemmLevel;

/// Bytes of a piece, where nothing else decides: two threads find their halves in L2 again.
const PIECE: usize = 1 << 20;

/// Small files come in smaller pieces, down to this.
const SMALLEST: usize = 1 << 16;

/// A piece of a small file is this part of it.
const PART: usize = 16;

/// Bytes that are read at once, where a piece is not one run.
const RUN: usize = 1 << 14;

/// The same where a thread has pieces of its own: its copy of half a run stays in its caches.
const OWN_RUN: usize = 1 << 13;

/// At least that many.
const SHORTEST: usize = 1 << 10;

/// Of an MN-major operand a piece takes that part of a matrix, or less.
const EIGHTH: usize = 8;

/// Bytes of a piece of an MN-major operand that has to have all of K.
const WHOLE_K: usize = 8 << 20;

/// Rows or columns below which a piece has only a part of K: the other operand is read for every piece.
const MIN_MN: usize = 32;

/// Padding of long runs, in bytes: powers of two share sets of the cache.
const APART: usize = 64;

/// How it is cut: the most of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StagedCut {
    pub batches: usize,
    pub mn: usize,
    pub k: usize,
    pub mn_major: bool,
    element: usize,
}

impl StagedCut {
    /// Of matrices of `mn_len` by `k` elements of `element` bytes; `unit` is where K may be cut, if it may.
    pub fn of(
        (batch, mn_len, k): (usize, usize, usize),
        mn_major: bool,
        element: usize,
        unit: Option<usize>,
    ) -> StagedCut {
        let matrix = mn_len.saturating_mul(k).saturating_mul(element).max(1);
        let room = (matrix.saturating_mul(batch) / PART).clamp(SMALLEST, PIECE);
        let cut = |batches, mn_len, k| StagedCut { batches, mn: mn_len, k, mn_major, element };
        if matrix <= room {
            return cut((room / matrix).clamp(1, batch.max(1)), mn_len, k);
        }
        let step = |mn_len: usize, unit: usize| {
            (room / (mn_len * element).max(1) / unit * unit).max(unit).min(k)
        };
        match (mn_major, unit) {
            (false, Some(unit)) if room / (k * element) < MIN_MN && k > unit => {
                let mn_len = mn_len.min(MIN_MN);
                cut(1, mn_len, step(mn_len, unit))
            }
            (false, _) => cut(1, (room / (k * element)).clamp(1, mn_len), k),
            (true, Some(unit)) => {
                // Shorter runs of a small matrix: a piece has as many as K is cut by.
                let run = (matrix / EIGHTH / unit.min(k).max(1)).clamp(SHORTEST, RUN);
                let runs = (mn_len * element).div_ceil(run).max(1);
                let mn_len = mn_len.div_ceil(runs).next_multiple_of(64).min(mn_len);
                cut(1, mn_len, step(mn_len, unit))
            }
            (true, None) => cut(1, (WHOLE_K / (k * element)).max(64).min(mn_len), k),
        }
    }

    /// The same for pieces that each of several threads has for itself, of rows or columns of its own, so that none waits
    /// for another: where those are whole rows of the result, or runs that are long enough to be read by themselves.
    pub fn of_thread(
        self,
        left: bool,
        (mn_len, k): (usize, usize),
        unit: Option<usize>,
        threads: usize,
    ) -> Option<StagedCut> {
        if threads < 2 || self.batches > 1 {
            return None;
        }
        if left {
            let whole = self.k == k && self.mn >= threads;
            return whole.then_some(StagedCut { mn: self.mn / threads, ..self });
        }
        let (unit, own) = (unit?, mn_len / threads);
        if !self.mn_major || own * self.element < OWN_RUN {
            return None;
        }
        let runs = (own * self.element).div_ceil(OWN_RUN);
        let mn_len = own.div_ceil(runs).next_multiple_of(64);
        let k_block = (PIECE / (mn_len * self.element) / unit * unit).max(unit).min(k);
        Some(StagedCut { mn: mn_len, k: k_block, ..self })
    }

    /// From one row or column of a piece to the next, or from one step of K to the next where it is MN-major.
    pub fn pitch(&self, run: usize) -> usize {
        match self.batches == 1 && run * self.element >= RUN / 2 {
            true => run + APART / self.element,
            false => run,
        }
    }

    /// Bytes of staging, from cache line to cache line.
    pub fn bytes(&self) -> usize {
        let (outer, run) = match self.mn_major {
            true => (self.k, self.mn),
            false => (self.mn, self.k),
        };
        (self.batches * outer * self.pitch(run) * self.element).next_multiple_of(64)
    }
}

/// M of the left operand, N of the right one.
pub(super) fn mn_of(size: Size, left: bool) -> usize {
    if left { size.rows } else { size.cols }
}

/// Staging and packing space where `own` threads have pieces of their own; of one piece for all threads where that is 1.
pub(super) fn bytes_of(cut: StagedCut, parts: &InParts, own: usize, each: usize) -> usize {
    let part = match parts.left {
        true => Size { rows: cut.mn, ..parts.whole },
        false => Size { cols: cut.mn, ..parts.whole },
    };
    // The space is halved at cache lines until each thread has its own: less than two of them are lost.
    own * (cut.bytes() + parts.scratch_bytes(part, each) + 128)
}

/// Staging and packing space of such a product, at any level.
pub(in super::super) fn space(
    size: Size,
    left: bool,
    mn_major: bool,
    dtype: DType,
    threads: usize,
) -> usize {
    let parts = InParts { whole: size, output: dtype, left, mn_major };
    let mn_len = mn_of(size, left);
    let at = |level: &GemmLevel| {
        let unit = parts.k_unit(*level);
        let of = |batch| StagedCut::of((batch, mn_len, size.k), mn_major, dtype.size(), unit);
        let own = of(1).of_thread(left, (mn_len, size.k), unit, threads);
        let own = own.map_or(0, |own| bytes_of(own, &parts, threads, 1));
        // One matrix for all of the batch comes by itself.
        own.max(bytes_of(of(1), &parts, 1, threads)).max(bytes_of(
            of(size.batch),
            &parts,
            1,
            threads,
        ))
    };
    GemmLevel::ALL.iter().map(at).max().unwrap_or(0)
}
