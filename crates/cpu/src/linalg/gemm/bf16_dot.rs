//! Products of `bf16` by dot products of pairs, where the machine has AMX (`kernel/amx`): both operands are packed as they are,
//! at half the bytes of `f32`, and sums are kept in `f32` until they are complete.
//!
//! The right operand is packed for all rows of a part where some columns of it fit L2 with all of K; otherwise a block
//! of it at a time, with the sums of as many rows as fit beside it. What 32 rows of the left operand have of a run of K
//! stays in L1 while the columns pass by. The order in which an element is summed follows from K alone, as everywhere.
//!
//! Decision: `docs/decisions/bf16-products-use-amx.md`.

#![allow(unsafe_code, reason = "hands pointers into packed blocks and sums to the matrix unit")]

use std::ops::Range;

use tonnage_ops::linalg::Size;
use tonnage_simd::product::amx::{AmxUnit, BLOCK, SIDE, STEP};
use tonnage_simd::product::{GEMV_MAX, GemmOutput};

use super::amx_tiles::{amx_rows, pack_right};
use super::epilogue::BlockPosition;
use super::run::GemmJob;

/// Steps of K of the left operand that are packed at once: with as many of 32 columns they fit L1.
const RUN: usize = 256;

/// Columns of the right operand that are packed at once.
const WIDE: usize = 512;

/// Elements of the right operand that are packed at once with all of K, at most: a part of L2.
const WHOLE: usize = 512 * 1024;

/// K of a block of the right operand otherwise, and the rows whose sums are kept.
const K_BLOCK: usize = 512;

/// See `K_BLOCK`.
const TALL: usize = 512;

/// Columns whose sums lie in rows of their own: few enough that 32 rows of them do not share a set of the cache.
const GROUP: usize = 128;

/// Columns of a product up to which its left operand is not packed: each of its elements is read only a few times.
const FEW_READS: usize = 4 * SIDE;

/// Whether the unit is worth its blocks of 32: it is for a few columns too where there is much to read for them.
pub(super) fn pays(size: Size) -> bool {
    let much = size.rows >= 2 * SIDE && size.k >= 2 * STEP;
    size.k > 0 && (size.cols > GEMV_MAX || much)
}

/// How a part is cut.
#[derive(Clone, Copy)]
struct Bf16Blocking {
    /// Rows whose sums are kept.
    rows: usize,
    /// Columns that are packed at once.
    cols: usize,
    /// Steps of K that are packed at once of the right operand.
    k_block: usize,
}

impl Bf16Blocking {
    fn of(rows: usize, cols: usize, k: usize) -> Bf16Blocking {
        let cols = cols.min(WIDE).next_multiple_of(SIDE);
        let k_block = k.next_multiple_of(STEP);
        match cols.saturating_mul(k_block) <= WHOLE {
            true => Bf16Blocking { rows: SIDE, cols, k_block },
            false => Bf16Blocking {
                rows: rows.min(TALL).next_multiple_of(SIDE),
                cols,
                k_block: k_block.min(K_BLOCK),
            },
        }
    }

    /// `f32`-sized elements of packing space for the left and for the right operand, and of sums.
    fn space(&self) -> [usize; 3] {
        let of = |mn_len: usize, k_block: usize| mn_len * k_block / 2;
        let sums = self.rows * self.cols.next_multiple_of(self.group());
        [of(SIDE, self.k_block.min(RUN)), of(self.cols, self.k_block), sums]
    }

    /// Columns from one row of sums to the next.
    fn group(&self) -> usize {
        self.cols.min(GROUP)
    }
}

/// `f32`-sized elements of space for a part of that size.
pub(super) fn space(rows: usize, cols: usize, k: usize) -> usize {
    Bf16Blocking::of(rows, cols, k).space().iter().sum()
}

/// The same for any part that is no larger.
pub(super) fn most_space(rows: usize, cols: usize, k: usize) -> usize {
    let cut = Bf16Blocking::of(rows, cols, k);
    // Fewer columns may be packed with all of K.
    let whole = WHOLE.min(cut.cols.saturating_mul(k.next_multiple_of(STEP))) / 2;
    let [a, b, sums] = cut.space();
    a.max(SIDE * RUN / 2) + b.max(whole) + sums.max(SIDE * WIDE)
}

impl<O: GemmOutput> GemmJob<'_, O> {
    /// Both operands hold `bf16`, sums are `f32`, and K is not 0.
    pub(super) fn bf16_dot(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        space: &mut [O::Compute],
    ) {
        let Some(unit) = AmxUnit::begin() else { return };
        let k_len = self.size.k;
        let cut = Bf16Blocking::of(rows.len(), cols.len(), k_len);
        let [of_a, of_b, of_sums] = cut.space();
        let (a_space, space) = space.split_at_mut(of_a);
        let (b_space, space) = space.split_at_mut(of_b);
        let strip = bytemuck::cast_slice_mut::<O::Compute, u16>(a_space);
        let panels = bytemuck::cast_slice_mut::<O::Compute, u16>(b_space);
        let sums = &mut space[..of_sums];
        let whole = cut.k_block >= k_len;
        let tall = if whole { rows.len() } else { cut.rows };
        for col in cols.clone().step_by(cut.cols) {
            let cols = col..cols.end.min(col + cut.cols);
            for row in rows.clone().step_by(tall) {
                let rows = row..rows.end.min(row + tall);
                for k in (0..k_len).step_by(cut.k_block) {
                    let run = k..k_len.min(k + cut.k_block);
                    let (wide, k_block) = (cols.clone(), run.clone());
                    pack_right(self.b, batch, wide, k_block, panels);
                    for first in rows.clone().step_by(SIDE) {
                        if self.workers.is_stopped() {
                            return;
                        }
                        let strip_rows = first..rows.end.min(first + SIDE);
                        let sums_row = if whole { 0 } else { first - row };
                        let sums =
                            &mut sums[sums_row * of_sums / cut.rows..][..of_sums / cut.rows * SIDE];
                        let at = (strip_rows, cols.clone(), run.clone());
                        self.bf16_strip(&unit, batch, at, cut.group(), strip, panels, sums);
                    }
                }
            }
        }
    }

    /// Up to 32 rows by all packed columns, over a run of K. Sums lie in groups of columns, each in rows of `group`;
    /// where K ends they go into the result.
    #[allow(clippy::too_many_arguments, reason = "the state of one loop, cut in two")]
    fn bf16_strip(
        &self,
        unit: &AmxUnit,
        batch: usize,
        (rows, cols, k_range): (Range<usize>, Range<usize>, Range<usize>),
        group: usize,
        strip: &mut [u16],
        panels: &[u16],
        sums: &mut [O::Compute],
    ) {
        let steps = k_range.len().div_ceil(STEP);
        let at = |col: usize| BlockPosition { batch, row: rows.start, col };
        let (first_col, each) = (cols.start, group * SIDE);
        let few_reads = self.size.cols <= FEW_READS;
        let groups = || cols.clone().step_by(group).map(|col| col..cols.end.min(col + group));
        if self.c.add && k_range.start == 0 {
            for (cols, sums) in groups().zip(sums.chunks_exact_mut(each)) {
                self.load(at(cols.start), [rows.len(), cols.len(), group], sums);
            }
        }
        for k in k_range.clone().step_by(RUN) {
            let run = k..k_range.end.min(k + RUN);
            let (first, count) = ((k - k_range.start) / STEP, run.len().div_ceil(STEP));
            let a = amx_rows(self.a, batch, rows.clone(), run.clone(), few_reads, strip);
            let add = self.c.add || k > 0;
            for (cols, sums) in groups().zip(sums.chunks_exact_mut(each)) {
                for col in (0..cols.len()).step_by(SIDE) {
                    let panel = (cols.start + col - first_col) / SIDE;
                    let b = &panels[(panel * steps + first) * BLOCK..][..count * BLOCK];
                    let c = sums[col..].as_mut_ptr().cast::<f32>();
                    let row = group * size_of::<f32>();
                    // SAFETY: rows and panel have that many blocks; 32 rows of 32 sums lie in the group from there on.
                    unsafe { unit.multiply(&a, b.as_ptr(), count, c, row, add) };
                }
                if run.end == self.size.k {
                    self.finish_rows(at(cols.start), [rows.len(), cols.len(), group], sums);
                }
            }
        }
    }
}
