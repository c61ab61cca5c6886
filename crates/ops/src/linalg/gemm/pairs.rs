//! Products of `bf16` in pairs, where the machine multiplies them so (`kernel/amx`): both operands are packed as they are,
//! at half the bytes of `f32`, and sums are kept in `f32` until they are complete.
//!
//! The right operand is packed for all rows of a part where some columns of it fit L2 in their whole depth; otherwise a block
//! of it at a time, with the sums of as many rows as fit beside it. What 32 rows of the left operand have of a run of depth
//! stays in L1 while the columns pass by. The order in which an element is summed follows from the depth alone, as everywhere.
//!
//! Decision: `docs/decisions/bf16-products-use-amx.md`.

#![allow(unsafe_code, reason = "hands pointers into packed blocks and sums to the matrix unit")]

use std::ops::Range;

use super::compute::Output;
use super::epilogue::{BlockEpilogue, Position};
use super::kernel::FEW;
use super::kernel::amx::{BLOCK, SIDE, STEP, Unit};
use super::operand::Operand;
use super::plan::Size;
use super::run::Job;
use super::squares::{lines_of, pack_right};

/// Steps of depth of the left operand that are packed at once: with as many of 32 columns they fit L1.
const RUN: usize = 256;
/// Columns of the right operand that are packed at once.
const WIDE: usize = 512;
/// Elements of the right operand that are packed at once in their whole depth, at most: a part of L2.
const WHOLE: usize = 512 * 1024;
/// The depth of a block of the right operand otherwise, and the rows whose sums are kept.
const DEEP: usize = 512;
/// See `DEEP`.
const TALL: usize = 512;
/// Columns whose sums lie in rows of their own: few enough that 32 rows of them do not share a set of the cache.
const GROUP: usize = 128;

/// Columns of a product up to which its left operand is read a few times: packing it would take longer than they do.
const FEW_TIMES: usize = 4 * SIDE;

/// Whether the unit is worth its blocks of 32: it is for a few columns too where there is much to read for them.
pub(super) fn pays(size: Size) -> bool {
    let much = size.rows >= 2 * SIDE && size.depth >= 2 * STEP;
    size.depth > 0 && (size.cols > FEW || much)
}

/// How a part is cut.
#[derive(Clone, Copy)]
struct Cut {
    /// Rows whose sums are kept.
    rows: usize,
    /// Columns that are packed at once.
    cols: usize,
    /// Steps of depth that are packed at once of the right operand.
    deep: usize,
}

impl Cut {
    fn of(rows: usize, cols: usize, depth: usize) -> Cut {
        let cols = cols.min(WIDE).next_multiple_of(SIDE);
        let deep = depth.next_multiple_of(STEP);
        match cols.saturating_mul(deep) <= WHOLE {
            true => Cut { rows: SIDE, cols, deep },
            false => {
                Cut { rows: rows.min(TALL).next_multiple_of(SIDE), cols, deep: deep.min(DEEP) }
            }
        }
    }

    /// `f32`-sized elements of packing space for the left and for the right operand, and of sums.
    fn space(&self) -> [usize; 3] {
        let of = |lines: usize, deep: usize| lines * deep / 2;
        let sums = self.rows * self.cols.next_multiple_of(self.group());
        [of(SIDE, self.deep.min(RUN)), of(self.cols, self.deep), sums]
    }

    /// Columns from one row of sums to the next.
    fn group(&self) -> usize {
        self.cols.min(GROUP)
    }
}

/// `f32`-sized elements of space for a part of that size.
pub(super) fn space(rows: usize, cols: usize, depth: usize) -> usize {
    Cut::of(rows, cols, depth).space().iter().sum()
}

/// The same for any part that is no larger.
pub(super) fn most_space(rows: usize, cols: usize, depth: usize) -> usize {
    let cut = Cut::of(rows, cols, depth);
    // Fewer columns may be packed in their whole depth.
    let whole = WHOLE.min(cut.cols.saturating_mul(depth.next_multiple_of(STEP))) / 2;
    let [a, b, sums] = cut.space();
    a.max(SIDE * RUN / 2) + b.max(whole) + sums.max(SIDE * WIDE)
}

impl<A, B, O, E> Job<'_, A, B, O, E>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: BlockEpilogue<O::Compute>,
{
    /// Both operands hold `bf16`, sums are `f32`, and depth is not 0.
    pub(super) fn pairs(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        space: &mut [O::Compute],
    ) {
        let Some(unit) = Unit::begin() else { return };
        let depth = self.size.depth;
        let cut = Cut::of(rows.len(), cols.len(), depth);
        let [of_a, of_b, of_sums] = cut.space();
        let (a_space, space) = space.split_at_mut(of_a);
        let (b_space, space) = space.split_at_mut(of_b);
        let strip = bytemuck::cast_slice_mut::<O::Compute, u16>(a_space);
        let panels = bytemuck::cast_slice_mut::<O::Compute, u16>(b_space);
        let sums = &mut space[..of_sums];
        let whole = cut.deep >= depth;
        let tall = if whole { rows.len() } else { cut.rows };
        for col in cols.clone().step_by(cut.cols) {
            let cols = col..cols.end.min(col + cut.cols);
            for row in rows.clone().step_by(tall) {
                let rows = row..rows.end.min(row + tall);
                for k in (0..depth).step_by(cut.deep) {
                    let run = k..depth.min(k + cut.deep);
                    let (wide, deep) = (cols.clone(), run.clone());
                    pack_right::<O::Compute, B>(self.b, batch, wide, deep, panels);
                    for first in rows.clone().step_by(SIDE) {
                        if self.workers.is_stopped() {
                            return;
                        }
                        let strip_rows = first..rows.end.min(first + SIDE);
                        let kept = if whole { 0 } else { first - row };
                        let sums =
                            &mut sums[kept * of_sums / cut.rows..][..of_sums / cut.rows * SIDE];
                        let at = (strip_rows, cols.clone(), run.clone());
                        self.strip_of_pairs(&unit, batch, at, cut.group(), strip, panels, sums);
                    }
                }
            }
        }
    }

    /// Up to 32 rows by all packed columns, over a run of depth. Sums lie in groups of columns, each in rows of `group`;
    /// where depth ends they go into the result.
    #[allow(clippy::too_many_arguments, reason = "the state of one loop, cut in two")]
    fn strip_of_pairs(
        &self,
        unit: &Unit,
        batch: usize,
        (rows, cols, depth): (Range<usize>, Range<usize>, Range<usize>),
        group: usize,
        strip: &mut [u16],
        panels: &[u16],
        sums: &mut [O::Compute],
    ) {
        let steps = depth.len().div_ceil(STEP);
        let at = |col: usize| Position { batch, row: rows.start, col };
        let (first_col, each) = (cols.start, group * SIDE);
        let few = self.size.cols <= FEW_TIMES;
        let groups = || cols.clone().step_by(group).map(|col| col..cols.end.min(col + group));
        if self.c.add && depth.start == 0 {
            for (cols, sums) in groups().zip(sums.chunks_exact_mut(each)) {
                self.load(at(cols.start), [rows.len(), cols.len(), group], sums);
            }
        }
        for k in depth.clone().step_by(RUN) {
            let run = k..depth.end.min(k + RUN);
            let (first, count) = ((k - depth.start) / STEP, run.len().div_ceil(STEP));
            let a = lines_of::<O::Compute, A>(self.a, batch, rows.clone(), run.clone(), few, strip);
            let add = self.c.add || k > 0;
            for (cols, sums) in groups().zip(sums.chunks_exact_mut(each)) {
                for col in (0..cols.len()).step_by(SIDE) {
                    let panel = (cols.start + col - first_col) / SIDE;
                    let b = &panels[(panel * steps + first) * BLOCK..][..count * BLOCK];
                    let c = sums[col..].as_mut_ptr().cast::<f32>();
                    let row = group * size_of::<f32>();
                    // SAFETY: lines and panel have that many blocks; 32 rows of 32 sums lie in the group from there on.
                    unsafe { unit.multiply(&a, b.as_ptr(), count, c, row, add) };
                }
                if run.end == self.size.depth {
                    self.finish(at(cols.start), [rows.len(), cols.len(), group], sums);
                }
            }
        }
    }
}
