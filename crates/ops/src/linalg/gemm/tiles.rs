#![allow(unsafe_code, reason = "hands pointers into packed blocks and the result to micro-kernels")]
//! The blocked loops: a block of the left operand is packed once and stays in the outer cache, a block of the right
//! one is packed into L2, a panel of the left one stays in L1 while the tiles along a row pass by.
//!
//! Rows outside and columns inside, the mirror of the usual order: results are rows, so a finished strip of
//! tiles is a run of whole rows, still in L1 when the epilogue sees it.

use std::ops::Range;

use super::compute::{Compute, Output};
use super::epilogue::{Block, Epilogue, Position};
use super::kernel::Tile;
use super::operand::{Direct, Operand};
use super::plan::{ALIGN, SUMS};
use super::run::Job;

/// A block of an operand as micro-kernels read it: panels, and in them elements at two strides.
struct Panels<C> {
    data: *const C,
    /// From one panel to the next.
    panel: isize,
    line: isize,
    depth: isize,
}

/// A part of a product: where its sums are kept, and what to add them to.
struct Part<C> {
    at: Position,
    rows: usize,
    cols: usize,
    sums: *mut C,
    sums_row: isize,
    add: bool,
}

impl<A, B, O, E> Job<'_, A, B, O, E>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: Epilogue<O::Compute>,
{
    /// Sums are kept in the result itself, which has their dtype.
    pub(super) fn in_place(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        space: &mut [O::Compute],
    ) {
        let at = Position { batch, row: rows.start, col: cols.start };
        // SAFETY: the part starts inside the result.
        let (data, row) = unsafe { self.c.at(at) };
        let part = Part {
            at,
            rows: rows.len(),
            cols: cols.len(),
            sums: data.cast::<O::Compute>(),
            sums_row: row,
            add: self.c.add,
        };
        // SAFETY: `O` is `O::Compute` here, and the part of the result is this piece's own.
        unsafe { self.part(&part, space) };
    }

    /// Sums are kept in scratch, block by block, and rounded into the result when complete.
    pub(super) fn rounded(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        space: &mut [O::Compute],
    ) {
        let unit = ALIGN / size_of::<O::Compute>();
        let most = rows.len().min(SUMS) * cols.len().min(SUMS);
        let (sums, space) = space.split_at_mut(most.next_multiple_of(unit));
        for row in rows.clone().step_by(SUMS) {
            for col in cols.clone().step_by(SUMS) {
                let at = Position { batch, row, col };
                let (rows, cols) = (SUMS.min(rows.end - row), SUMS.min(cols.end - col));
                let sums = &mut sums[..rows * cols];
                if self.c.add {
                    self.load(at, cols, sums);
                }
                let part = Part {
                    at,
                    rows,
                    cols,
                    sums: sums.as_mut_ptr(),
                    sums_row: cols as isize,
                    add: self.c.add,
                };
                // SAFETY: `sums` holds the part's rows one after the other.
                unsafe { self.part(&part, space) };
                self.store(at, cols, sums);
            }
        }
    }

    /// # Safety
    /// `part.sums` must be valid for the part's rows and columns and held by nobody else.
    unsafe fn part(&self, part: &Part<O::Compute>, space: &mut [O::Compute]) {
        let (kernel, depth) = (self.kernel, self.size.depth);
        if depth == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.nothing_to_sum(part) };
            return;
        }
        let tile = kernel.rows_of_tile(part.rows);
        let deep = kernel.depth_of_block(depth).min(depth);
        let tall = kernel.rows_of_block(part.rows, tile);
        let wide = kernel.block_cols.min(part.cols.next_multiple_of(kernel.cols));
        let unit = ALIGN / size_of::<O::Compute>();
        let (a_space, b_space) = space.split_at_mut((tall * deep).next_multiple_of(unit));
        let a_direct = self.left_in_memory(part);
        let b_direct = self.right_in_memory(part);
        for i in (0..part.rows).step_by(tall) {
            let rows = tall.min(part.rows - i);
            for k in (0..depth).step_by(deep) {
                let run = k..depth.min(k + deep);
                let first = part.at.row + i;
                let a = panels(
                    self.a,
                    a_direct,
                    part.at.batch,
                    first..first + rows,
                    &run,
                    tile,
                    a_space,
                );
                for j in (0..part.cols).step_by(wide) {
                    let cols = wide.min(part.cols - j);
                    let first = part.at.col + j;
                    let lines = first..first + cols;
                    let b =
                        panels(self.b, b_direct, part.at.batch, lines, &run, kernel.cols, b_space);
                    let block = Part {
                        at: Position { row: part.at.row + i, col: first, ..part.at },
                        rows,
                        cols,
                        // SAFETY: inside the part.
                        sums: unsafe { part.sums.offset(i as isize * part.sums_row + j as isize) },
                        sums_row: part.sums_row,
                        add: part.add || k > 0,
                    };
                    // SAFETY: the panels cover the block; its sums are part of the caller's.
                    unsafe { self.block(&block, tile, run.len(), &a, &b, run.end == depth) };
                }
            }
        }
    }

    /// Tiles of one block, row strip by row strip.
    ///
    /// # Safety
    /// The panels must cover the block's rows, columns and depth; `block.sums` as for `part`.
    unsafe fn block(
        &self,
        block: &Part<O::Compute>,
        tile: usize,
        depth: usize,
        a: &Panels<O::Compute>,
        b: &Panels<O::Compute>,
        last: bool,
    ) {
        let kernel = self.kernel;
        for (p, i) in (0..block.rows).step_by(tile).enumerate() {
            let rows = tile.min(block.rows - i);
            // SAFETY: row `i` is in the block.
            let strip = unsafe { block.sums.offset(i as isize * block.sums_row) };
            for (q, j) in (0..block.cols).step_by(kernel.cols).enumerate() {
                let call = Tile {
                    depth,
                    a: a.data.wrapping_offset(p as isize * a.panel),
                    a_row: a.line,
                    a_depth: a.depth,
                    b: b.data.wrapping_offset(q as isize * b.panel),
                    b_depth: b.depth,
                    c: strip.wrapping_add(j),
                    c_row: block.sums_row,
                    rows,
                    cols: kernel.cols.min(block.cols - j),
                    add: block.add,
                };
                // SAFETY: the kernel's level is available, and the tile lies in panels and block.
                unsafe { (kernel.tile)(&call) };
            }
            if last {
                let at = Position { row: block.at.row + i, ..block.at };
                // SAFETY: the strip is part of the block, whose sums nobody else holds.
                let mut strip = unsafe { Block::new(at, rows, block.cols, strip, block.sums_row) };
                self.epilogue.finish(&mut strip);
            }
        }
    }

    /// A product over no depth: zeros, or what the result held.
    ///
    /// # Safety
    /// As for `part`.
    unsafe fn nothing_to_sum(&self, part: &Part<O::Compute>) {
        // SAFETY: the caller's promise.
        let mut block =
            unsafe { Block::new(part.at, part.rows, part.cols, part.sums, part.sums_row) };
        if !part.add {
            (0..part.rows).for_each(|i| block.row(i).fill(O::Compute::ZERO));
        }
        self.epilogue.finish(&mut block);
    }

    /// The left operand in place, where each element is used too few times to pay for packing.
    fn left_in_memory(&self, part: &Part<O::Compute>) -> Option<Direct<'_, O::Compute>> {
        let direct = self.a.direct(part.at.batch)?;
        (part.cols <= 4 * self.kernel.cols && direct.holds(self.size.rows, self.size.depth))
            .then_some(direct)
    }

    /// The right operand in place: its columns must lie side by side, and whole tiles of them where the
    /// kernel has no masks.
    fn right_in_memory(&self, part: &Part<O::Compute>) -> Option<Direct<'_, O::Compute>> {
        let direct = self.b.direct(part.at.batch)?;
        let fits = self.kernel.masks || part.cols % self.kernel.cols == 0;
        (direct.line == 1
            && fits
            && part.rows <= 4 * self.kernel.rows
            && direct.holds(self.size.cols, self.size.depth))
        .then_some(direct)
    }
}

/// A block of an operand, where it lies or packed into `space`.
fn panels<C: Compute, X: Operand<C>>(
    operand: &X,
    direct: Option<Direct<'_, C>>,
    batch: usize,
    lines: Range<usize>,
    depth: &Range<usize>,
    width: usize,
    space: &mut [C],
) -> Panels<C> {
    if let Some(Direct { data, start, line, depth: step }) = direct {
        let at = start as isize + lines.start as isize * line + depth.start as isize * step;
        let data = data.as_ptr().wrapping_offset(at);
        return Panels { data, panel: width as isize * line, line, depth: step };
    }
    let out = &mut space[..lines.len().next_multiple_of(width) * depth.len()];
    operand.pack(batch, lines, depth.clone(), width, out);
    let width = width as isize;
    Panels { data: out.as_ptr(), panel: width * depth.len() as isize, line: 1, depth: width }
}
