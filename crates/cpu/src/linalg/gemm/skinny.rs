//! GEMV: products with a few rows or a few columns. And skinny GEMM: those with some rows by a matrix that is
//! large and lies in rows: what else they do is done while it is read.
//!
//! The large operand is read once, in the order of memory, and not packed where it lies as it is computed in.
//! Sums of a chunk of the result are kept in scratch until they are complete.
//!
//! Decision: `docs/decisions/thin-products-follow-memory.md`.

#![allow(unsafe_code, reason = "calls kernels that need the instructions of their level")]

use std::ops::Range;

use tonnage_simd::product::{
    Compute, Flushed, GEMV_MAX, GemmOutput, GemvStream, SIDE_BY_SIDE, Tile, TileFn,
};

use super::epilogue::BlockPosition;
use super::operand::{DirectMatrix, GemmOperand};
use super::plan::{ALIGN, GEMV_CHAIN, GEMV_K, GemmPath, gemv_chunk, gemv_packed};
use super::run::GemmJob;

/// Rows that tiles of a few columns read before the next: rows of whole tiles, in L2 for tiles of more columns.
const ACROSS: usize = 24;

impl<O: GemmOutput> GemmJob<'_, O> {
    /// All of `thin` by the given rows or columns of `large`. `transposed` where `large` is the left operand: its
    /// rows are the rows of the result then.
    pub(super) fn gemv(
        &self,
        thin: &dyn GemmOperand<O::Compute>,
        large: &dyn GemmOperand<O::Compute>,
        batch: usize,
        mn_range: Range<usize>,
        transposed: bool,
        space: &mut [O::Compute],
    ) {
        let (k_len, count) =
            (self.size.k, if transposed { self.size.cols } else { self.size.rows });
        let unit = ALIGN / size_of::<O::Compute>();
        let (chunk, steps) = gemv_chunk(count, mn_range.len());
        let k_block = k_len.min(GEMV_K);
        let chain =
            if self.plan.path == GemmPath::SkinnyRows { self.plan.k_block } else { GEMV_CHAIN };
        let (small, space) = space.split_at_mut((count * k_block).next_multiple_of(unit));
        let (sums, space) = space.split_at_mut((count * chunk).next_multiple_of(unit));
        let packed = gemv_packed(chunk, k_len).next_multiple_of(unit);
        let (packed, rows) = space.split_at_mut(packed);
        let direct = large.direct(batch).filter(|direct| {
            direct.holds(if transposed { self.size.rows } else { self.size.cols }, k_len)
        });
        let k_major = large.is_k_major();
        let in_rows = |direct: &DirectMatrix<'_, O::Compute>| direct.k_stride == 1;
        let small_rows =
            thin.direct(batch).filter(|thin| in_rows(thin) && thin.holds(count, k_len));
        let rows_of_both = small_rows.zip(direct.filter(in_rows));
        let skinny = self.kernel.skinny.filter(|_| transposed && k_major && count > 1);
        for first in mn_range.clone().step_by(chunk.max(1)) {
            if self.workers.is_stopped() {
                return;
            }
            let len = chunk.min(mn_range.end - first);
            let at = if transposed {
                BlockPosition { batch, row: first, col: 0 }
            } else {
                BlockPosition { batch, row: 0, col: first }
            };
            if let Some(tile) = skinny {
                let rows = &mut rows[..count * len];
                match self.c.add {
                    true => self.load(at, [len, count, count], rows),
                    false => rows.fill(O::Compute::ZERO),
                }
                self.gemv_tiles(
                    tile,
                    (thin, large),
                    batch,
                    first..first + len,
                    direct,
                    small,
                    packed,
                    rows,
                );
                self.finish_rows(at, [len, count, count], rows);
                continue;
            }
            let sums = &mut sums[..count * len];
            match (self.c.add, transposed) {
                (false, _) => sums.fill(O::Compute::ZERO),
                (true, false) => self.load(at, [count, len, len], sums),
                (true, true) => {
                    self.load(at, [len, count, count], &mut rows[..count * len]);
                    transpose(&rows[..count * len], count, sums);
                }
            }
            let block = first..first + len;
            let flushed = Flushed::begin();
            // What is left to do by blocks of K.
            let mut left = k_len;
            if let Some((thin, large)) = rows_of_both {
                self.dots_of_rows(&thin, &large, block.clone(), sums);
                left = 0;
            }
            let step = if k_major { k_block } else { chain };
            for k in (0..left).step_by(step.max(1)) {
                let run = k..k_len.min(k + step);
                let block = block.clone();
                if k_major {
                    self.dots(thin, large, batch, block, run, direct, small, packed, sums);
                    continue;
                }
                let packed = (&mut *packed, steps);
                if k == 0 && !self.c.add {
                    self.streams(thin, large, batch, block, run, direct, small, packed, sums);
                    continue;
                }
                let more = &mut rows[..count * len];
                more.fill(O::Compute::ZERO);
                self.streams(thin, large, batch, block, run, direct, small, packed, more);
                sums.iter_mut().zip(&*more).for_each(|(sum, x)| *sum = O::Compute::add(*sum, *x));
            }
            drop(flushed);
            if transposed {
                let rows = &mut rows[..count * len];
                transpose(sums, len, rows);
                self.finish_rows(at, [len, count, count], rows);
            } else {
                self.finish_rows(at, [count, len, len], sums);
            }
        }
    }

    /// A few columns whose large operand is K-major: some rows at a time by all columns, in tiles. Rows are read as
    /// they lie or packed: the bits are the same.
    #[allow(clippy::too_many_arguments, reason = "the state of one loop")]
    fn gemv_tiles(
        &self,
        tile: TileFn<O::Compute>,
        (thin, large): (&dyn GemmOperand<O::Compute>, &dyn GemmOperand<O::Compute>),
        batch: usize,
        mn_range: Range<usize>,
        direct: Option<DirectMatrix<'_, O::Compute>>,
        small: &mut [O::Compute],
        packed: &mut [O::Compute],
        rows: &mut [O::Compute],
    ) {
        let (k_len, count) = (self.size.k, self.size.cols);
        let direct = direct.filter(|direct| direct.k_stride == 1);
        // Tiles of columns, as alike as can be.
        let wide = count.div_ceil(count.div_ceil(GEMV_MAX));
        let flushed = Flushed::begin();
        for k in (0..k_len).step_by(GEMV_K) {
            let run = k..k_len.min(k + GEMV_K);
            let k_block = run.len();
            let small = &mut small[..count * k_block];
            thin.pack(batch, 0..count, run.clone(), 1, small);
            let room = if direct.is_some() { ACROSS } else { (packed.len() / k_block).max(1) };
            for mn in mn_range.clone().step_by(room.min(ACROSS)) {
                let some = mn..mn_range.end.min(mn + room.min(ACROSS));
                let (a, a_row) = match direct {
                    // All of them lie in the slice, as was checked.
                    Some(direct) => (direct.run(mn, run.clone()).as_ptr(), direct.mn_stride),
                    None => {
                        let packed = &mut packed[..some.len() * k_block];
                        large.pack(batch, some.clone(), run.clone(), 1, packed);
                        (packed.as_ptr(), k_block as isize)
                    }
                };
                let rows = &mut rows[(mn - mn_range.start) * count..][..some.len() * count];
                for col in (0..count).step_by(wide) {
                    let call = Tile {
                        k: k_block,
                        a,
                        a_row,
                        a_k: 1,
                        a_run: usize::MAX,
                        a_jump: 0,
                        a_first: usize::MAX,
                        a_period: usize::MAX,
                        a_leap: 0,
                        b: small[col * k_block..].as_ptr(),
                        b_k: k_block as isize,
                        pack_to: std::ptr::null_mut(),
                        c: rows[col..].as_mut_ptr(),
                        c_row: count as isize,
                        rows: some.len(),
                        cols: wide.min(count - col),
                        add: self.c.add || k > 0,
                        onward: false,
                    };
                    // SAFETY: the kernel's level is available; rows, columns and sums lie in the slices.
                    unsafe { tile(&call) };
                }
            }
        }
        drop(flushed);
    }

    /// Both operands are K-major: rows are read from start to end, some side by side, since several streams
    /// of memory are faster than one. Products are cut along K, and the parts added up, as in `dots`: the bits are
    /// the same.
    fn dots_of_rows(
        &self,
        thin: &DirectMatrix<'_, O::Compute>,
        large: &DirectMatrix<'_, O::Compute>,
        mn_range: Range<usize>,
        sums: &mut [O::Compute],
    ) {
        let (k_len, len) = (self.size.k, mn_range.len());
        let mut i = 0;
        while i < len {
            let together = if len - i >= SIDE_BY_SIDE { SIDE_BY_SIDE } else { 1 };
            let mn = mn_range.start + i;
            for k in (0..k_len).step_by(GEMV_K) {
                let part = k..k_len.min(k + GEMV_K);
                for (f, sums) in sums.chunks_exact_mut(len).enumerate() {
                    let x = thin.run(f, part.clone());
                    let sums = &mut sums[i..i + together];
                    if let Ok(sums) = <&mut [O::Compute; SIDE_BY_SIDE]>::try_from(&mut *sums) {
                        let runs = std::array::from_fn(|l| large.run(mn + l, part.clone()));
                        // SAFETY: the kernel's level is available.
                        unsafe { (self.kernel.dots)(x, &runs, sums) };
                    } else if let [sum] = sums {
                        // SAFETY: the kernel's level is available.
                        let dot = unsafe { (self.kernel.dot)(x, large.run(mn, part.clone())) };
                        *sum = O::Compute::add(*sum, dot);
                    }
                }
            }
            i += together;
        }
    }

    /// K-major: a dot product for every element.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one loop, cut in two for its two bodies"
    )]
    fn dots(
        &self,
        thin: &dyn GemmOperand<O::Compute>,
        large: &dyn GemmOperand<O::Compute>,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        direct: Option<DirectMatrix<'_, O::Compute>>,
        small: &mut [O::Compute],
        packed: &mut [O::Compute],
        sums: &mut [O::Compute],
    ) {
        let (k_block, len) = (k_range.len(), mn_range.len());
        let count = sums.len() / len;
        let small = &mut small[..count * k_block];
        thin.pack(batch, 0..count, k_range.clone(), 1, small);
        // As many rows are packed at once as there is room for: what is read from a file comes in larger pieces.
        let together = (packed.len() / k_block.max(1)).max(1);
        for (i, mn) in mn_range.clone().enumerate() {
            let run = match direct {
                Some(direct) if direct.k_stride == 1 => direct.run(mn, k_range.clone()),
                _ => {
                    if i % together == 0 {
                        let ahead = mn..mn_range.end.min(mn + together);
                        let room = ahead.len() * k_block;
                        large.pack(batch, ahead, k_range.clone(), 1, &mut packed[..room]);
                    }
                    &packed[i % together * k_block..][..k_block]
                }
            };
            for (f, x) in small.chunks_exact(k_block).enumerate() {
                // SAFETY: the kernel's level is available.
                let dot = unsafe { (self.kernel.dot)(x, run) };
                sums[f * len + i] = O::Compute::add(sums[f * len + i], dot);
            }
        }
    }

    /// MN-major (or packed so, some steps of K at a time): rows of the large operand are added up,
    /// each times an element of the small one.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one loop, cut in two for its two bodies"
    )]
    fn streams(
        &self,
        thin: &dyn GemmOperand<O::Compute>,
        large: &dyn GemmOperand<O::Compute>,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        direct: Option<DirectMatrix<'_, O::Compute>>,
        small: &mut [O::Compute],
        (packed, at_once): (&mut [O::Compute], usize),
        sums: &mut [O::Compute],
    ) {
        let (k_block, len) = (k_range.len(), mn_range.len());
        let count = sums.len() / len;
        let small = &mut small[..count * k_block];
        thin.pack(batch, 0..count, k_range.clone(), count, small);
        if let Some(DirectMatrix { data, start, mn_stride: 1, k_stride: stride }) = direct {
            let start = start as isize + mn_range.start as isize + k_range.start as isize * stride;
            let stream =
                GemvStream { thin: small, count, data, start, k_stride: stride, k: k_block, len };
            // SAFETY: the kernel's level is available.
            unsafe { (self.kernel.stream)(&stream, sums) };
            return;
        }
        let block = [mn_range.clone(), k_range.clone()];
        if count <= GEMV_MAX && large.stream(self.level, batch, small, block, sums) {
            return;
        }
        for k in k_range.clone().step_by(at_once) {
            let run = k..k_range.end.min(k + at_once);
            let steps = run.len();
            let data = &mut packed[..len * steps];
            large.pack(batch, mn_range.clone(), run, len, data);
            let thin = &small[(k - k_range.start) * count..][..steps * count];
            let stream =
                GemvStream { thin, count, data, start: 0, k_stride: len as isize, k: steps, len };
            // SAFETY: the kernel's level is available.
            unsafe { (self.kernel.stream)(&stream, sums) };
        }
    }
}

/// Transposes `from`, whose rows have `cols` elements.
fn transpose<C: Copy>(from: &[C], cols: usize, to: &mut [C]) {
    let rows = from.len() / cols;
    for (j, to) in to.chunks_exact_mut(rows).enumerate() {
        for (to, from) in to.iter_mut().zip(from[j..].iter().step_by(cols)) {
            *to = *from;
        }
    }
}
