//! The blocked loops: a block of the left operand is packed once and stays in the outer cache, a block of the right
//! one is packed into L2, a panel of the left one stays in L1 while the tiles along a row pass by.
//!
//! Rows outside and columns inside, the mirror of the usual order: results are rows, so a finished strip of
//! tiles is a run of whole rows, still in L1 when the epilogue sees it.

#![allow(unsafe_code, reason = "hands pointers into packed blocks and the result to micro-kernels")]

use std::ops::Range;

use tonnage_simd::product::{ALONG, Compute, Flushed, GEMV_MAX, GemmOutput, Tile, TileFn};

use super::epilogue::{BlockPosition, OutputBlock};
use super::operand::{DirectMatrix, Packs, Strip};
use super::panels::{Access, Left, Panels, Right, packed};
use super::plan::{ALIGN, SUMS};
use super::run::GemmJob;

/// The left operand is not packed where at most that many tiles along a row read it: its elements are broadcast, so any
/// stride will do, and just caches suffer.
const LEFT_DIRECT: usize = 16;

/// The right operand is not packed where at most that many tiles along a column read it, and it is near or in some cache:
/// from memory it is read at full speed in its own order alone, which packing does and tiles do not.
const RIGHT_DIRECT: usize = 4;

/// Elements of finished rows that an epilogue is given at least, where there are so many: it has work to do before the first of
/// them, and this many are still in L1.
const FINISHED: usize = 4096;

/// The most bytes of a right operand that is taken to be in a cache.
const CACHED: usize = 4 << 20;

/// A part of a product: where its sums are kept, and what to add them to.
pub(super) struct OutputPart<C> {
    pub at: BlockPosition,
    pub rows: usize,
    pub cols: usize,
    pub sums: *mut C,
    pub sums_row: isize,
    pub add: bool,
}

impl<O: GemmOutput> GemmJob<'_, O> {
    /// Sums are kept in the result itself, which has their dtype and even rows.
    pub(super) fn in_place(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        space: &mut [O::Compute],
    ) {
        let at = BlockPosition { batch, row: rows.start, col: cols.start };
        // SAFETY: the part starts inside the result.
        let data = unsafe { self.c.at(at) };
        let part = OutputPart {
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
                let at = BlockPosition { batch, row, col };
                let (rows, cols) = (SUMS.min(rows.end - row), SUMS.min(cols.end - col));
                let sums = &mut sums[..rows * cols];
                if self.c.add {
                    self.load(at, [rows, cols, cols], sums);
                }
                let part = OutputPart {
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
    unsafe fn part(&self, part: &OutputPart<O::Compute>, space: &mut [O::Compute]) {
        let (kernel, k_len) = (self.kernel, self.size.k);
        if k_len == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.nothing_to_sum(part) };
            return;
        }
        // Rows that belong together are a row of tiles.
        let packs = self.a.packs();
        let tile = kernel.rows_of_tile(packs.row().min(part.rows), self.size.cols);
        let k_block = self.plan.k_block;
        // Panels of the right operand: a column each where tiles are slim.
        let skinny = kernel.skinny.filter(|_| self.size.cols <= GEMV_MAX && packs.along() >= ALONG);
        let (b_access, width) = match skinny {
            Some(_) => (Access::Packed, 1),
            None => (self.right_access(part, k_block), kernel.cols),
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
            Packs::Blocks => tall * k_block,
            Packs::Strips { .. } => tile * k_block,
            Packs::Band { space, .. } => space.max(tile * k_block),
        };
        let (a_space, b_space) = space.split_at_mut(lent.next_multiple_of(unit));
        let a_direct = self.left_in_memory(part);
        // Where all of the right operand is one block it stays packed.
        let one_block = k_block >= k_len && wide >= part.cols;
        let mut stays = false;
        for i in (0..part.rows).step_by(tall) {
            let rows = tall.min(part.rows - i);
            for k in (0..k_len).step_by(k_block) {
                let run = k..k_len.min(k + k_block);
                let first = part.at.row + i;
                let mn_range = first..first + rows;
                let a = match (&a_direct, packs) {
                    (Some(direct), _) => Left::Panels(direct.panels(&mn_range, &run, tile)),
                    (None, Packs::Blocks) => {
                        Left::Panels(packed(self.a, part.at.batch, mn_range, &run, tile, a_space))
                    }
                    (None, Packs::Strips { .. }) => Left::Strips,
                    (None, Packs::Band { .. }) => self.band(part.at.batch, mn_range, &run, a_space),
                };
                for j in (0..part.cols).step_by(wide) {
                    if self.workers.is_stopped() {
                        return;
                    }
                    let cols = wide.min(part.cols - j);
                    let first = part.at.col + j;
                    let mn_range = first..first + cols;
                    let at = BlockPosition { row: part.at.row + i, col: first, ..part.at };
                    let strip = self.rows_of_strip(at.row, rows, tile);
                    let batch = part.at.batch;
                    let b = match stays {
                        true => Right {
                            first: Panels::packed(b_space, k_len, width),
                            packed_by_first: None,
                            packed: true,
                        },
                        false => {
                            let shape = (width, strip);
                            self.right_panels(&b_access, batch, mn_range, &run, shape, b_space)
                        }
                    };
                    stays = one_block && b.packed;
                    let block = OutputPart {
                        at,
                        rows,
                        cols,
                        // SAFETY: inside the part.
                        sums: unsafe { part.sums.offset(i as isize * part.sums_row + j as isize) },
                        sums_row: part.sums_row,
                        add: part.add || k > 0,
                    };
                    // SAFETY: the panels cover the block; its sums are part of the caller's.
                    unsafe { self.block(&block, (tile, skinny), &run, &a, a_space, &b) };
                }
            }
        }
    }

    /// Tiles of one block, row strip by row strip.
    ///
    /// # Safety
    /// The panels must cover the block's rows, columns and K; `block.sums` as for `part`.
    unsafe fn block(
        &self,
        block: &OutputPart<O::Compute>,
        (tile, skinny): (usize, Option<TileFn<O::Compute>>),
        k_range: &Range<usize>,
        a: &Left<O::Compute>,
        a_space: &mut [O::Compute],
        b: &Right<O::Compute>,
    ) {
        let kernel = self.kernel;
        let last = k_range.end == self.size.k;
        let (mut p, mut i) = (0, 0);
        // The first row that the epilogue has not seen.
        let mut unseen = 0;
        while i < block.rows {
            let first = block.at.row + i;
            let rows = self.rows_of_strip(first, block.rows - i, tile);
            let (a, a_panel) = match a {
                Left::Panels(panels) => (panels, p),
                Left::Strips => {
                    (&self.strip(block.at.batch, first..first + rows, k_range, a_space), 0)
                }
                Left::Band(data, band) => (&band.strip(*data, first), 0),
            };
            // SAFETY: row `i` is in the block.
            let strip = unsafe { block.sums.offset(i as isize * block.sums_row) };
            // The first strip reads where `b` lies and packs it for the others.
            let (b, pack_to) = match &b.packed_by_first {
                Some(packed_by_first) if p > 0 => (packed_by_first, None),
                packed_by_first => (&b.first, packed_by_first.as_ref()),
            };
            let flushed = Flushed::begin();
            for (q, j) in (0..block.cols).step_by(kernel.cols).enumerate() {
                let call = Tile {
                    k: k_range.len(),
                    a: a.data.wrapping_offset(a_panel as isize * a.panel),
                    a_row: a.mn_stride,
                    a_k: a.k_stride,
                    a_run: a.run,
                    a_jump: a.jump,
                    a_first: a.first,
                    a_period: a.period,
                    a_leap: a.leap,
                    b: b.data.wrapping_offset(q as isize * b.panel),
                    b_k: if skinny.is_some() { b.panel } else { b.k_stride },
                    pack_to: pack_to.map_or(std::ptr::null_mut(), |packed_by_first| {
                        packed_by_first
                            .data
                            .wrapping_offset(q as isize * packed_by_first.panel)
                            .cast_mut()
                    }),
                    c: strip.wrapping_add(j),
                    c_row: block.sums_row,
                    rows,
                    cols: kernel.cols.min(block.cols - j),
                    add: block.add,
                    onward: false,
                };
                assert!(skinny.is_none() || a.k_stride == 1, "an operand that is not K-major");
                // SAFETY: the kernel's level is available, and the tile lies in panels and block.
                unsafe { skinny.unwrap_or(kernel.tile)(&call) };
            }
            drop(flushed);
            (p, i) = (p + 1, i + rows);
            if last && (i == block.rows || (i - unseen) * block.cols >= FINISHED) {
                let at = BlockPosition { row: block.at.row + unseen, ..block.at };
                // SAFETY: the rows are part of the block, whose sums nobody else holds.
                let mut finished = unsafe {
                    let sums = block.sums.offset(unseen as isize * block.sums_row);
                    OutputBlock::new(at, i - unseen, block.cols, sums, block.sums_row)
                };
                self.epilogue.apply(&mut finished);
                unseen = i;
            }
        }
    }

    /// How many rows from `first` on, of `left` that remain, one strip of tiles has.
    fn rows_of_strip(&self, first: usize, left: usize, tile: usize) -> usize {
        match self.a.packs().row() {
            usize::MAX => tile.min(left),
            row => tile.min(left).min(row - first % row),
        }
    }

    /// A band for some rows, or none where the operand does not lie so.
    fn band(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: &Range<usize>,
        space: &mut [O::Compute],
    ) -> Left<O::Compute> {
        let Some(band) = self.a.band(batch, mn_range.clone(), k_range.clone(), space) else {
            return Left::Strips;
        };
        // The last element that a tile would read: positions only grow.
        let last = band.mn.at(mn_range.end - 1 - band.origin) + band.k.at(k_range.len() - 1);
        assert!(last < space.len(), "a band that leaves its space");
        Left::Band(space.as_ptr(), band)
    }

    /// The rows of one strip of tiles, packed as the operand likes it.
    fn strip(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: &Range<usize>,
        space: &mut [O::Compute],
    ) -> Panels<O::Compute> {
        let (count, k_block) = (mn_range.len(), k_range.len());
        let out = &mut space[..count * k_block];
        let Strip { mn_stride, k_stride, run, jump } =
            self.a.strip(batch, mn_range, k_range.clone(), out);
        // The last element that a tile would read.
        let last =
            (count - 1) * mn_stride + (k_block - 1) * k_stride + (k_block - 1) / run.max(1) * jump;
        assert!(run > 0 && last < out.len(), "a strip that leaves its space");
        Panels {
            data: out.as_ptr(),
            mn_stride: mn_stride as isize,
            k_stride: k_stride as isize,
            jump: jump as isize,
            ..Panels::even(run)
        }
    }

    /// A product with K of 0: zeros, or what the result held.
    ///
    /// # Safety
    /// As for `part`.
    unsafe fn nothing_to_sum(&self, part: &OutputPart<O::Compute>) {
        // SAFETY: the caller's promise.
        let mut block =
            unsafe { OutputBlock::new(part.at, part.rows, part.cols, part.sums, part.sums_row) };
        if !part.add {
            (0..part.rows).for_each(|i| block.row(i).fill(O::Compute::ZERO));
        }
        self.epilogue.apply(&mut block);
    }

    /// The left operand in place, where each element is used too few times to pay for packing.
    fn left_in_memory(
        &self,
        part: &OutputPart<O::Compute>,
    ) -> Option<DirectMatrix<'_, O::Compute>> {
        let direct = self.a.direct(part.at.batch)?;
        (part.cols <= LEFT_DIRECT * self.kernel.cols && direct.holds(self.size.rows, self.size.k))
            .then_some(direct)
    }

    /// How tiles get at the right operand. Where it lies, its columns must lie side by side, and be whole tiles of them
    /// where the kernel has no masks.
    fn right_access(
        &self,
        part: &OutputPart<O::Compute>,
        k_block: usize,
    ) -> Access<'_, O::Compute> {
        let fits = self.kernel.masks || part.cols.is_multiple_of(self.kernel.cols);
        let direct = self.b.direct(part.at.batch).filter(|direct| {
            direct.mn_stride == 1 && fits && direct.holds(self.size.cols, self.size.k)
        });
        let near = |direct: &DirectMatrix<'_, O::Compute>| {
            let all = self.size.cols.saturating_mul(self.size.k) * size_of::<O::Compute>();
            direct.is_near(k_block) || all <= CACHED
        };
        match direct {
            Some(direct) if part.rows <= RIGHT_DIRECT * self.kernel.rows && near(&direct) => {
                Access::InPlace(direct)
            }
            // Panels of it would be half empty.
            Some(direct) if 2 * self.size.cols <= self.kernel.cols && direct.is_near(k_block) => {
                Access::InPlace(direct)
            }
            // It is a panel.
            Some(direct) if direct.k_stride.unsigned_abs() <= self.kernel.cols => {
                Access::InPlace(direct)
            }
            Some(direct) if direct.is_near(k_block) => Access::PackOnFirstRead(direct),
            _ => Access::Packed,
        }
    }

    /// A block of the right operand in panels of that width; `strip` is the number of rows of the first tiles that read it.
    fn right_panels(
        &self,
        access: &Access<'_, O::Compute>,
        batch: usize,
        mn_range: Range<usize>,
        k_range: &Range<usize>,
        (width, strip): (usize, usize),
        space: &mut [O::Compute],
    ) -> Right<O::Compute> {
        match access {
            Access::InPlace(direct) => Right {
                first: direct.panels(&mn_range, k_range, width),
                packed_by_first: None,
                packed: false,
            },
            Access::PackOnFirstRead(direct) if strip >= self.kernel.min_packing_rows => {
                let out = &mut space[..mn_range.len().next_multiple_of(width) * k_range.len()];
                let packed_by_first = Some(Panels::packed(out, k_range.len(), width));
                Right {
                    first: direct.panels(&mn_range, k_range, width),
                    packed_by_first,
                    packed: true,
                }
            }
            _ => {
                let first = packed(self.b, batch, mn_range, k_range, width, space);
                Right { first, packed_by_first: None, packed: true }
            }
        }
    }
}
