//! The blocked loops: a block of the left operand is packed once and stays in the outer cache, a block of the right
//! one is packed into L2, a panel of the left one stays in L1 while the tiles along a row pass by.
//!
//! Rows outside and columns inside, the mirror of the usual order: results are rows, so a finished strip of
//! tiles is a run of whole rows, still in L1 when the epilogue sees it.

#![allow(unsafe_code, reason = "hands pointers into packed blocks and the result to micro-kernels")]

use std::ops::Range;

use super::compute::{Compute, Output};
use super::epilogue::{Block, BlockEpilogue, Position};
use super::kernel::{ALONG, FEW, Flushed, Tile, TileFn};
use super::operand::{Direct, Operand, Packs, Strip};
use super::panels::{Access, Left, Panels, Right, packed};
use super::plan::{ALIGN, SUMS};
use super::run::Job;

/// The left operand is not packed where at most that many tiles along a row read it: its elements are broadcast, so any
/// stride will do, and just caches suffer.
const LEFT_DIRECT: usize = 16;

/// The right operand is not packed where at most that many tiles along a column read it, and it is near or in some cache:
/// from memory it is read at full speed in its own order alone, which packing does and tiles do not.
const RIGHT_DIRECT: usize = 4;

/// The most bytes of a right operand that is taken to be in a cache.
const CACHED: usize = 4 << 20;

/// A part of a product: where its sums are kept, and what to add them to.
pub(super) struct Part<C> {
    pub at: Position,
    pub rows: usize,
    pub cols: usize,
    pub sums: *mut C,
    pub sums_row: isize,
    pub add: bool,
}

impl<A, B, O, E> Job<'_, A, B, O, E>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: BlockEpilogue<O::Compute>,
{
    /// Sums are kept in the result itself, which has their dtype and even rows.
    pub(super) fn in_place(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        space: &mut [O::Compute],
    ) {
        let at = Position { batch, row: rows.start, col: cols.start };
        // SAFETY: the part starts inside the result.
        let data = unsafe { self.c.at(at) };
        let part = Part {
            at,
            rows: rows.len(),
            cols: cols.len(),
            sums: data.cast::<O::Compute>(),
            sums_row: self.c.row_stride(),
            add: self.c.add,
        };
        // SAFETY: `O` is `O::Compute` and rows lie evenly here, and the part of the result is this piece's own.
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
                    self.load(at, [rows, cols, cols], sums);
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
                self.store(at, [rows, cols, cols], sums);
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
        // Lines that belong together are a row of tiles.
        let packs = self.a.packs();
        let tile = kernel.rows_of_tile(packs.row().min(part.rows), self.size.cols);
        let deep = self.plan.deep;
        // Panels of the right operand: a column each where tiles are slim.
        let slim = kernel.slim.filter(|_| self.size.cols <= FEW && packs.along() >= ALONG);
        let (b_access, width) = match slim {
            Some(_) => (Access::Packed, 1),
            None => (self.right_access(part, deep), kernel.cols),
        };
        let tall = match (packs, &b_access) {
            (Packs::Band { tall, .. }, _) => tall.clamp(1, part.rows),
            // A strip at a time is read to its end: nothing is packed anew for the next one.
            (Packs::Blocks, Access::InPlace(_)) if part.cols <= kernel.cols => tile,
            _ => kernel.rows_of_block(part.rows, tile),
        };
        let wide = kernel.block_cols.min(part.cols.next_multiple_of(kernel.cols));
        let unit = ALIGN / size_of::<O::Compute>();
        let lent = match packs {
            Packs::Blocks => tall * deep,
            Packs::Strips { .. } => tile * deep,
            Packs::Band { space, .. } => space.max(tile * deep),
        };
        let (a_space, b_space) = space.split_at_mut(lent.next_multiple_of(unit));
        let a_direct = self.left_in_memory(part);
        // Where all of the right operand is one block it stays packed.
        let one_block = deep >= depth && wide >= part.cols;
        let mut stays = false;
        for i in (0..part.rows).step_by(tall) {
            let rows = tall.min(part.rows - i);
            for k in (0..depth).step_by(deep) {
                let run = k..depth.min(k + deep);
                let first = part.at.row + i;
                let lines = first..first + rows;
                let a = match (&a_direct, packs) {
                    (Some(direct), _) => Left::Panels(direct.panels(&lines, &run, tile)),
                    (None, Packs::Blocks) => {
                        Left::Panels(packed(self.a, part.at.batch, lines, &run, tile, a_space))
                    }
                    (None, Packs::Strips { .. }) => Left::Strips,
                    (None, Packs::Band { .. }) => self.band(part.at.batch, lines, &run, a_space),
                };
                for j in (0..part.cols).step_by(wide) {
                    if self.workers.is_stopped() {
                        return;
                    }
                    let cols = wide.min(part.cols - j);
                    let first = part.at.col + j;
                    let lines = first..first + cols;
                    let at = Position { row: part.at.row + i, col: first, ..part.at };
                    let strip = self.lines_of_strip(at.row, rows, tile);
                    let batch = part.at.batch;
                    let b = match stays {
                        true => Right {
                            first: Panels::packed(b_space, depth, width),
                            kept: None,
                            packed: true,
                        },
                        false => {
                            let shape = (width, strip);
                            self.right_panels(&b_access, batch, lines, &run, shape, b_space)
                        }
                    };
                    stays = one_block && b.packed;
                    let block = Part {
                        at,
                        rows,
                        cols,
                        // SAFETY: inside the part.
                        sums: unsafe { part.sums.offset(i as isize * part.sums_row + j as isize) },
                        sums_row: part.sums_row,
                        add: part.add || k > 0,
                    };
                    // SAFETY: the panels cover the block; its sums are part of the caller's.
                    unsafe { self.block(&block, (tile, slim), &run, &a, a_space, &b) };
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
        (tile, slim): (usize, Option<TileFn<O::Compute>>),
        depth: &Range<usize>,
        a: &Left<O::Compute>,
        a_space: &mut [O::Compute],
        b: &Right<O::Compute>,
    ) {
        let kernel = self.kernel;
        let last = depth.end == self.size.depth;
        let (mut p, mut i) = (0, 0);
        while i < block.rows {
            let first = block.at.row + i;
            let rows = self.lines_of_strip(first, block.rows - i, tile);
            let (a, a_panel) = match a {
                Left::Panels(panels) => (panels, p),
                Left::Strips => {
                    (&self.strip(block.at.batch, first..first + rows, depth, a_space), 0)
                }
                Left::Band(data, band) => (&band.strip(*data, first), 0),
            };
            // SAFETY: row `i` is in the block.
            let strip = unsafe { block.sums.offset(i as isize * block.sums_row) };
            // The first strip reads where `b` lies and packs it for the others.
            let (b, keep) = match &b.kept {
                Some(kept) if p > 0 => (kept, None),
                kept => (&b.first, kept.as_ref()),
            };
            let flushed = Flushed::begin();
            for (q, j) in (0..block.cols).step_by(kernel.cols).enumerate() {
                let call = Tile {
                    depth: depth.len(),
                    a: a.data.wrapping_offset(a_panel as isize * a.panel),
                    a_row: a.line,
                    a_depth: a.depth,
                    a_run: a.run,
                    a_jump: a.jump,
                    a_first: a.first,
                    a_turns: a.turns,
                    a_leap: a.leap,
                    b: b.data.wrapping_offset(q as isize * b.panel),
                    b_depth: if slim.is_some() { b.panel } else { b.depth },
                    keep: keep.map_or(std::ptr::null_mut(), |kept| {
                        kept.data.wrapping_offset(q as isize * kept.panel).cast_mut()
                    }),
                    c: strip.wrapping_add(j),
                    c_row: block.sums_row,
                    rows,
                    cols: kernel.cols.min(block.cols - j),
                    add: block.add,
                    onward: false,
                };
                assert!(slim.is_none() || a.depth == 1, "lines that do not lie along depth");
                // SAFETY: the kernel's level is available, and the tile lies in panels and block.
                unsafe { slim.unwrap_or(kernel.tile)(&call) };
            }
            drop(flushed);
            if last {
                let at = Position { row: block.at.row + i, ..block.at };
                // SAFETY: the strip is part of the block, whose sums nobody else holds.
                let mut strip = unsafe { Block::new(at, rows, block.cols, strip, block.sums_row) };
                self.epilogue.finish(&mut strip);
            }
            (p, i) = (p + 1, i + rows);
        }
    }

    /// How many lines from `first` on, of so many that are left, one strip of tiles has.
    fn lines_of_strip(&self, first: usize, left: usize, tile: usize) -> usize {
        match self.a.packs().row() {
            usize::MAX => tile.min(left),
            row => tile.min(left).min(row - first % row),
        }
    }

    /// A band for some lines, or none where the operand does not lie so.
    fn band(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: &Range<usize>,
        space: &mut [O::Compute],
    ) -> Left<O::Compute> {
        let Some(band) = self.a.band(batch, lines.clone(), depth.clone(), space) else {
            return Left::Strips;
        };
        // The last element that a tile would read: walks go forward.
        let last = band.lines.at(lines.end - 1 - band.origin) + band.depth.at(depth.len() - 1);
        assert!(last < space.len(), "a band that leaves its space");
        Left::Band(space.as_ptr(), band)
    }

    /// The lines of one strip of tiles, packed as the operand likes it.
    fn strip(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: &Range<usize>,
        space: &mut [O::Compute],
    ) -> Panels<O::Compute> {
        let (count, deep) = (lines.len(), depth.len());
        let out = &mut space[..count * deep];
        let Strip { line, depth, run, jump } = self.a.strip(batch, lines, depth.clone(), out);
        // The last element that a tile would read.
        let last = (count - 1) * line + (deep - 1) * depth + (deep - 1) / run.max(1) * jump;
        assert!(run > 0 && last < out.len(), "a strip that leaves its space");
        Panels {
            data: out.as_ptr(),
            line: line as isize,
            depth: depth as isize,
            jump: jump as isize,
            ..Panels::even(run)
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
        (part.cols <= LEFT_DIRECT * self.kernel.cols
            && direct.holds(self.size.rows, self.size.depth))
        .then_some(direct)
    }

    /// How tiles get at the right operand. Where it lies, its columns must lie side by side, and be whole tiles of them
    /// where the kernel has no masks.
    fn right_access(&self, part: &Part<O::Compute>, deep: usize) -> Access<'_, O::Compute> {
        let fits = self.kernel.masks || part.cols.is_multiple_of(self.kernel.cols);
        let direct = self.b.direct(part.at.batch).filter(|direct| {
            direct.line == 1 && fits && direct.holds(self.size.cols, self.size.depth)
        });
        let near = |direct: &Direct<'_, O::Compute>| {
            let all = self.size.cols.saturating_mul(self.size.depth) * size_of::<O::Compute>();
            direct.is_near(deep) || all <= CACHED
        };
        match direct {
            Some(direct) if part.rows <= RIGHT_DIRECT * self.kernel.rows && near(&direct) => {
                Access::InPlace(direct)
            }
            // Panels of it would be half empty.
            Some(direct) if 2 * self.size.cols <= self.kernel.cols && direct.is_near(deep) => {
                Access::InPlace(direct)
            }
            // It is a panel.
            Some(direct) if direct.depth.unsigned_abs() <= self.kernel.cols => {
                Access::InPlace(direct)
            }
            Some(direct) if direct.is_near(deep) => Access::FileValue(direct),
            _ => Access::Packed,
        }
    }

    /// A block of the right operand in panels of that width; `strip` is the number of rows of the first tiles that read it.
    fn right_panels(
        &self,
        access: &Access<'_, O::Compute>,
        batch: usize,
        lines: Range<usize>,
        depth: &Range<usize>,
        (width, strip): (usize, usize),
        space: &mut [O::Compute],
    ) -> Right<O::Compute> {
        match access {
            Access::InPlace(direct) => {
                Right { first: direct.panels(&lines, depth, width), kept: None, packed: false }
            }
            Access::FileValue(direct) if strip >= self.kernel.keeps => {
                let out = &mut space[..lines.len().next_multiple_of(width) * depth.len()];
                let kept = Some(Panels::packed(out, depth.len(), width));
                Right { first: direct.panels(&lines, depth, width), kept, packed: true }
            }
            _ => {
                let first = packed(self.b, batch, lines, depth, width, space);
                Right { first, kept: None, packed: true }
            }
        }
    }
}
