//! Products with a few rows or a few columns: matrix times vector and its kin. And those with some rows by a matrix that is
//! large and lies in rows: what else they do is done while it is read.
//!
//! The large operand is read once, in the order of memory, and not packed where it lies as it is computed in.
//! Sums of a chunk of the result are kept in scratch until they are complete.

#![allow(unsafe_code, reason = "calls kernels that need the instructions of their level")]

use std::ops::Range;

use super::compute::{Compute, Output};
use super::epilogue::{BlockEpilogue, Position};
use super::kernel::{FEW, Flushed, SIDE_BY_SIDE, Stream, Tile, TileFn};
use super::operand::{Direct, Operand};
use super::plan::{ALIGN, FEW_CHAIN, FEW_DEPTH, Path, chunk_of_few, packed_of_few};
use super::run::Job;

/// Lines that tiles of a few columns read before the next: rows of whole tiles, in L2 for tiles of more columns.
const ACROSS: usize = 24;

impl<A, B, O, E> Job<'_, A, B, O, E>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: BlockEpilogue<O::Compute>,
{
    /// All lines of `few` by the given lines of `many`. `turned` where `many` is the left operand: its
    /// lines are the rows of the result then.
    pub(super) fn few<X, Y>(
        &self,
        few: &X,
        many: &Y,
        batch: usize,
        lines: Range<usize>,
        turned: bool,
        space: &mut [O::Compute],
    ) where
        X: Operand<O::Compute>,
        Y: Operand<O::Compute>,
    {
        let (depth, count) =
            (self.size.depth, if turned { self.size.cols } else { self.size.rows });
        let unit = ALIGN / size_of::<O::Compute>();
        let (chunk, steps) = chunk_of_few(count, lines.len());
        let deep = depth.min(FEW_DEPTH);
        let chain = if self.plan.path == Path::SomeRows { self.plan.deep } else { FEW_CHAIN };
        let (small, space) = space.split_at_mut((count * deep).next_multiple_of(unit));
        let (sums, space) = space.split_at_mut((count * chunk).next_multiple_of(unit));
        let packed = packed_of_few(chunk, depth).next_multiple_of(unit);
        let (packed, rows) = space.split_at_mut(packed);
        let direct = many.direct(batch).filter(|direct| {
            direct.holds(if turned { self.size.rows } else { self.size.cols }, depth)
        });
        let along_depth = many.runs_along_depth();
        let in_rows = |direct: &Direct<'_, O::Compute>| direct.depth == 1;
        let small_rows = few.direct(batch).filter(|few| in_rows(few) && few.holds(count, depth));
        let rows_of_both = small_rows.zip(direct.filter(in_rows));
        let slim = self.kernel.slim.filter(|_| turned && along_depth && count > 1);
        for first in lines.clone().step_by(chunk.max(1)) {
            if self.workers.is_stopped() {
                return;
            }
            let len = chunk.min(lines.end - first);
            let at = if turned {
                Position { batch, row: first, col: 0 }
            } else {
                Position { batch, row: 0, col: first }
            };
            if let Some(tile) = slim {
                let rows = &mut rows[..count * len];
                match self.c.add {
                    true => self.load(at, [len, count, count], rows),
                    false => rows.fill(O::Compute::ZERO),
                }
                self.across(
                    tile,
                    (few, many),
                    batch,
                    first..first + len,
                    direct,
                    small,
                    packed,
                    rows,
                );
                self.finish(at, [len, count, count], rows);
                continue;
            }
            let sums = &mut sums[..count * len];
            match (self.c.add, turned) {
                (false, _) => sums.fill(O::Compute::ZERO),
                (true, false) => self.load(at, [count, len, len], sums),
                (true, true) => {
                    self.load(at, [len, count, count], &mut rows[..count * len]);
                    turn(&rows[..count * len], count, sums);
                }
            }
            let block = first..first + len;
            let flushed = Flushed::begin();
            // What is left to do by blocks of depth.
            let mut left = depth;
            if let Some((few, many)) = rows_of_both {
                self.rows(&few, &many, block.clone(), sums);
                left = 0;
            }
            let step = if along_depth { deep } else { chain };
            for k in (0..left).step_by(step.max(1)) {
                let run = k..depth.min(k + step);
                let block = block.clone();
                if along_depth {
                    self.dots(few, many, batch, block, run, direct, small, packed, sums);
                    continue;
                }
                let packed = (&mut *packed, steps);
                if k == 0 && !self.c.add {
                    self.streams(few, many, batch, block, run, direct, small, packed, sums);
                    continue;
                }
                let more = &mut rows[..count * len];
                more.fill(O::Compute::ZERO);
                self.streams(few, many, batch, block, run, direct, small, packed, more);
                sums.iter_mut().zip(&*more).for_each(|(sum, x)| *sum = O::Compute::add(*sum, *x));
            }
            drop(flushed);
            if turned {
                let rows = &mut rows[..count * len];
                turn(sums, len, rows);
                self.finish(at, [len, count, count], rows);
            } else {
                self.finish(at, [count, len, len], sums);
            }
        }
    }

    /// A few columns whose large operand lies along depth: some lines at a time by all columns, in tiles. Lines are read as
    /// they lie or packed: the bits are the same.
    #[allow(clippy::too_many_arguments, reason = "the state of one loop")]
    fn across<X: Operand<O::Compute>, Y: Operand<O::Compute>>(
        &self,
        tile: TileFn<O::Compute>,
        (few, many): (&X, &Y),
        batch: usize,
        lines: Range<usize>,
        direct: Option<Direct<'_, O::Compute>>,
        small: &mut [O::Compute],
        packed: &mut [O::Compute],
        rows: &mut [O::Compute],
    ) {
        let (depth, count) = (self.size.depth, self.size.cols);
        let direct = direct.filter(|direct| direct.depth == 1);
        // Tiles of columns, as alike as can be.
        let wide = count.div_ceil(count.div_ceil(FEW));
        let flushed = Flushed::begin();
        for k in (0..depth).step_by(FEW_DEPTH) {
            let run = k..depth.min(k + FEW_DEPTH);
            let deep = run.len();
            let small = &mut small[..count * deep];
            few.pack(batch, 0..count, run.clone(), 1, small);
            let room = if direct.is_some() { ACROSS } else { (packed.len() / deep).max(1) };
            for line in lines.clone().step_by(room.min(ACROSS)) {
                let some = line..lines.end.min(line + room.min(ACROSS));
                let (a, a_row) = match direct {
                    // All of them lie in the slice, as was checked.
                    Some(direct) => (direct.run(line, run.clone()).as_ptr(), direct.line),
                    None => {
                        let packed = &mut packed[..some.len() * deep];
                        many.pack(batch, some.clone(), run.clone(), 1, packed);
                        (packed.as_ptr(), deep as isize)
                    }
                };
                let rows = &mut rows[(line - lines.start) * count..][..some.len() * count];
                for col in (0..count).step_by(wide) {
                    let call = Tile {
                        depth: deep,
                        a,
                        a_row,
                        a_depth: 1,
                        a_run: usize::MAX,
                        a_jump: 0,
                        a_first: usize::MAX,
                        a_turns: usize::MAX,
                        a_leap: 0,
                        b: small[col * deep..].as_ptr(),
                        b_depth: deep as isize,
                        keep: std::ptr::null_mut(),
                        c: rows[col..].as_mut_ptr(),
                        c_row: count as isize,
                        rows: some.len(),
                        cols: wide.min(count - col),
                        add: self.c.add || k > 0,
                        onward: false,
                    };
                    // SAFETY: the kernel's level is available; lines, columns and sums lie in the slices.
                    unsafe { tile(&call) };
                }
            }
        }
        drop(flushed);
    }

    /// Both operands lie in rows along depth: lines are read from start to end, some side by side, since several streams
    /// of memory are faster than one. Products are cut along depth, and the parts added up, as in `dots`: the bits are
    /// the same.
    fn rows(
        &self,
        few: &Direct<'_, O::Compute>,
        many: &Direct<'_, O::Compute>,
        lines: Range<usize>,
        sums: &mut [O::Compute],
    ) {
        let (depth, len) = (self.size.depth, lines.len());
        let mut i = 0;
        while i < len {
            let together = if len - i >= SIDE_BY_SIDE { SIDE_BY_SIDE } else { 1 };
            let line = lines.start + i;
            for k in (0..depth).step_by(FEW_DEPTH) {
                let part = k..depth.min(k + FEW_DEPTH);
                for (f, sums) in sums.chunks_exact_mut(len).enumerate() {
                    let x = few.run(f, part.clone());
                    let sums = &mut sums[i..i + together];
                    if let Ok(sums) = <&mut [O::Compute; SIDE_BY_SIDE]>::try_from(&mut *sums) {
                        let runs = std::array::from_fn(|l| many.run(line + l, part.clone()));
                        // SAFETY: the kernel's level is available.
                        unsafe { (self.kernel.dots)(x, &runs, sums) };
                    } else if let [sum] = sums {
                        // SAFETY: the kernel's level is available.
                        let dot = unsafe { (self.kernel.dot)(x, many.run(line, part.clone())) };
                        *sum = O::Compute::add(*sum, dot);
                    }
                }
            }
            i += together;
        }
    }

    /// Depth runs along memory: a dot product for every element.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one loop, cut in two for its two bodies"
    )]
    fn dots<X: Operand<O::Compute>, Y: Operand<O::Compute>>(
        &self,
        few: &X,
        many: &Y,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        direct: Option<Direct<'_, O::Compute>>,
        small: &mut [O::Compute],
        packed: &mut [O::Compute],
        sums: &mut [O::Compute],
    ) {
        let (deep, len) = (depth.len(), lines.len());
        let count = sums.len() / len;
        let small = &mut small[..count * deep];
        few.pack(batch, 0..count, depth.clone(), 1, small);
        // As many lines are packed at once as there is room for: what is read from a file comes in larger pieces.
        let together = (packed.len() / deep.max(1)).max(1);
        for (i, line) in lines.clone().enumerate() {
            let run = match direct {
                Some(direct) if direct.depth == 1 => direct.run(line, depth.clone()),
                _ => {
                    if i % together == 0 {
                        let ahead = line..lines.end.min(line + together);
                        let room = ahead.len() * deep;
                        many.pack(batch, ahead, depth.clone(), 1, &mut packed[..room]);
                    }
                    &packed[i % together * deep..][..deep]
                }
            };
            for (f, x) in small.chunks_exact(deep).enumerate() {
                // SAFETY: the kernel's level is available.
                let dot = unsafe { (self.kernel.dot)(x, run) };
                sums[f * len + i] = O::Compute::add(sums[f * len + i], dot);
            }
        }
    }

    /// Lines run along memory (or are packed so, some steps of depth at a time): rows of the large operand are added up,
    /// each times an element of the small one.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one loop, cut in two for its two bodies"
    )]
    fn streams<X: Operand<O::Compute>, Y: Operand<O::Compute>>(
        &self,
        few: &X,
        many: &Y,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        direct: Option<Direct<'_, O::Compute>>,
        small: &mut [O::Compute],
        (packed, at_once): (&mut [O::Compute], usize),
        sums: &mut [O::Compute],
    ) {
        let (deep, len) = (depth.len(), lines.len());
        let count = sums.len() / len;
        let small = &mut small[..count * deep];
        few.pack(batch, 0..count, depth.clone(), count, small);
        if let Some(Direct { data, start, line: 1, depth: stride }) = direct {
            let start = start as isize + lines.start as isize + depth.start as isize * stride;
            let stream =
                Stream { few: small, count, data, start, depth_stride: stride, depth: deep, len };
            // SAFETY: the kernel's level is available.
            unsafe { (self.kernel.stream)(&stream, sums) };
            return;
        }
        let block = [lines.clone(), depth.clone()];
        if count <= FEW && many.stream(self.level, batch, small, block, sums) {
            return;
        }
        for k in depth.clone().step_by(at_once) {
            let run = k..depth.end.min(k + at_once);
            let steps = run.len();
            let data = &mut packed[..len * steps];
            many.pack(batch, lines.clone(), run, len, data);
            let few = &small[(k - depth.start) * count..][..steps * count];
            let stream = Stream {
                few,
                count,
                data,
                start: 0,
                depth_stride: len as isize,
                depth: steps,
                len,
            };
            // SAFETY: the kernel's level is available.
            unsafe { (self.kernel.stream)(&stream, sums) };
        }
    }
}

/// Transposes `from`, whose rows have `cols` elements.
fn turn<C: Copy>(from: &[C], cols: usize, to: &mut [C]) {
    let rows = from.len() / cols;
    for (j, to) in to.chunks_exact_mut(rows).enumerate() {
        for (to, from) in to.iter_mut().zip(from[j..].iter().step_by(cols)) {
            *to = *from;
        }
    }
}
