//! Products of 8-bit integers with sums of 32 bits: four steps of K at once by one instruction where the machine has it (VNNI), by
//! plain loops of the same bits elsewhere.
//!
//! The instruction multiplies unsigned by signed bytes. So the left operand is packed as signed bytes and the right one as unsigned ones, moved by 128 where it has the
//! other sign, and what that adds is taken off each block by the sums of its rows and columns. All of it wraps, so the order of
//! additions does not matter.
//!
//! Blocks of the right operand fit L2 and are packed by each thread for its own columns or rows; rows of the left one are packed a strip at a time, for L1.

#![allow(
    unsafe_code,
    reason = "threads write to one result whose rows interleave, through a pointer"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "the inner loops index arrays: what adapters of iterators are made of is not always inlined, which costs more than a product"
)]

use std::ops::Range;

use tonnage_core::{Bytes, ErrorKind, Result};
use tonnage_ops::linalg::Size;
use tonnage_simd::product::fetch;
use tonnage_simd::product::vnni::{COLS, IntegerLevel, ROWS, STEP, Sums, interleave};

use super::epilogue::BlockPosition;
use super::operand::Strides;
use super::run::OutputSink;
use super::target::Area;
use crate::workers::Workers;

/// Steps of K of a block.
const DEEP: usize = 1024;

/// Columns of a block of the right operand, which is a part of L2 then.
const WIDE: usize = 256;

/// Rows or columns that are worth a thread of their own.
const SHARE: usize = 64;

/// A matrix of bytes at any strides.
#[derive(Debug, Clone, Copy)]
pub struct IntegerMatrix<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// Where the matrix lies in them.
    pub strides: Strides,
    /// Whether they are signed.
    pub signed: bool,
}

/// Packing space of one thread.
fn space(size: Size) -> usize {
    let deep = size.k.min(DEEP).next_multiple_of(STEP);
    let wide = size.cols.min(WIDE).next_multiple_of(COLS);
    deep * (wide + ROWS)
}

/// The packing space that [`integer_product`] wants.
pub fn integer_scratch_bytes(size: Size, threads: usize) -> Bytes {
    Bytes::of(space(size).saturating_mul(threads.max(1)))
}

/// `out = a * b` of one pair of matrices, by rows that follow each other.
///
/// # Errors
/// Where strides leave a slice, the result is of another size, or the scratch is too small.
pub fn integer_product(
    size: Size,
    a: &IntegerMatrix,
    b: &IntegerMatrix,
    out: &mut [i32],
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    integer_product_at(IntegerLevel::best(), size, a, b, out, scratch, workers)
}

/// The same by the instructions of a level, or by plain loops where the machine lacks it.
#[doc(hidden)]
pub fn integer_product_at(
    level: IntegerLevel,
    size: Size,
    a: &IntegerMatrix,
    b: &IntegerMatrix,
    out: &mut [i32],
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    let each = space(size);
    let wrong = |what: String| ErrorKind::BadArgument {
        op: "matmul_integer",
        what,
        help: "lend what integer_scratch_bytes asks for".into(),
    };
    if out.len() != size.rows * size.cols || scratch.len() < each {
        let what =
            format!("{} results and {} bytes of scratch for {size:?}", out.len(), scratch.len());
        return Err(wrong(what).into());
    }
    if out.is_empty() {
        return Ok(());
    }
    if size.k == 0 {
        out.fill(0);
        return Ok(());
    }
    for (matrix, [rows, cols]) in [(a, [size.rows, size.k]), (b, [size.k, size.cols])] {
        if !matrix.holds(rows, cols) {
            return Err(wrong(format!("a matrix {rows} by {cols} that leaves its slice")).into());
        }
    }
    let level = if level.is_available() { level } else { IntegerLevel::Portable };
    let most = workers.threads().min(scratch.len() / each.max(1)).max(1);
    let by_cols = size.cols >= size.rows;
    let threads = most.min((if by_cols { size.cols } else { size.rows }).div_ceil(SHARE)).max(1);
    let job = IntegerJob { level, size, a, b, workers, each };
    let mut area = Area::all(out, size.cols);
    let part = Part { rows: 0..size.rows, cols: 0..size.cols, by_cols };
    job.split(&mut area, part, threads, scratch);
    workers.check()
}

impl IntegerMatrix<'_> {
    fn holds(&self, rows: usize, cols: usize) -> bool {
        let Strides { start, row, col, .. } = self.strides;
        let end = |n: usize, stride: isize| (n as isize - 1).checked_mul(stride);
        let (Some(down), Some(across)) = (end(rows, row), end(cols, col)) else { return false };
        let low = start as isize + down.min(0) + across.min(0);
        let high = start as isize + down.max(0) + across.max(0);
        low >= 0 && (high as usize) < self.data.len()
    }

    fn at(&self, row: usize, col: usize) -> usize {
        let Strides { start, row: down, col: across, .. } = self.strides;
        (start as isize + row as isize * down + col as isize * across) as usize
    }
}

/// What threads share.
struct IntegerJob<'a> {
    level: IntegerLevel,
    size: Size,
    a: &'a IntegerMatrix<'a>,
    b: &'a IntegerMatrix<'a>,
    workers: &'a dyn Workers,
    /// Packing space of one thread.
    each: usize,
}

/// What one thread computes, and whether it is cut along columns.
struct Part {
    rows: Range<usize>,
    cols: Range<usize>,
    by_cols: bool,
}

impl IntegerJob<'_> {
    fn split(&self, area: &mut Area<'_, i32>, part: Part, threads: usize, scratch: &mut [u8]) {
        if threads == 1 {
            return self.part(area, part, scratch);
        }
        let half = threads / 2;
        let (first, second) = scratch.split_at_mut(half * self.each);
        let Part { rows, cols, by_cols } = part;
        let cut = |all: &Range<usize>, unit: usize| {
            let share = (all.len() * half / threads).next_multiple_of(unit);
            (all.start + share).min(all.end)
        };
        let at = if by_cols { cut(&cols, COLS) } else { cut(&rows, ROWS) };
        let (left, right) = match by_cols {
            true => ((rows.clone(), cols.start..at), (rows, at..cols.end)),
            false => ((rows.start..at, cols.clone()), (at..rows.end, cols)),
        };
        let part = |(rows, cols)| Part { rows, cols, by_cols };
        let (left, right) = (part(left), part(right));
        let (mut near, mut far) = match by_cols {
            true => area.split_at_col(at),
            false => area.split_at_row(at),
        };
        let (mut left, mut right) = (Some(left), Some(right));
        self.workers.join(
            &mut || {
                if let Some(part) = left.take() {
                    self.split(&mut near, part, half, first);
                }
            },
            &mut || {
                if let Some(part) = right.take() {
                    self.split(&mut far, part, threads - half, second);
                }
            },
        );
    }

    fn part(&self, area: &mut Area<'_, i32>, part: Part, scratch: &mut [u8]) {
        let Part { rows, cols, .. } = part;
        if rows.is_empty() || cols.is_empty() {
            return;
        }
        let whole = Size::single(rows.len(), cols.len(), self.size.k);
        let sink = area.sink((rows.start, cols.start), whole, self.size.rows, false);
        let deep = self.size.k.min(DEEP).next_multiple_of(STEP);
        let (strip, panels) = scratch[..self.each].split_at_mut(deep * ROWS);
        let strip = bytemuck::cast_slice_mut::<u8, i8>(strip);
        for col in cols.clone().step_by(WIDE) {
            let wide = col..cols.end.min(col + WIDE);
            for k in (0..self.size.k).step_by(DEEP) {
                let run = k..self.size.k.min(k + DEEP);
                let of_cols = self.pack_right(&wide, &run, panels);
                for row in rows.clone().step_by(ROWS) {
                    if self.workers.is_stopped() {
                        return;
                    }
                    let tall = row..rows.end.min(row + ROWS);
                    let of_rows = self.pack_left(&tall, &run, strip);
                    let at =
                        BlockPosition { batch: 0, row: row - rows.start, col: col - cols.start };
                    let block = IntegerBlock {
                        sizes: [tall.len(), wide.len(), run.len()],
                        strip,
                        panels,
                        of_rows,
                        of_cols: &of_cols,
                        add: k > 0,
                    };
                    self.block(&sink, at, &block);
                }
            }
        }
    }

    /// One strip of rows by the columns of a block.
    fn block(&self, sink: &OutputSink<i32>, at: BlockPosition, block: &IntegerBlock) {
        let [rows, cols, deep] = block.sizes;
        let padded = deep.next_multiple_of(STEP);
        let mut sums: Sums = [[0; COLS]; ROWS];
        let panels = block.panels.chunks_exact(padded * COLS);
        for (panel, first) in panels.zip((0..cols).step_by(COLS)) {
            self.level.tile(rows, block.strip, panel, &mut sums);
            let count = COLS.min(cols - first);
            let of_cols = &block.of_cols[first..][..count];
            for (i, (sums, of_row)) in sums.iter().zip(&block.of_rows).take(rows).enumerate() {
                let at = BlockPosition { batch: 0, row: at.row + i, col: at.col + first };
                // SAFETY: a part of a row of what this thread was lent, which nobody else holds.
                let out = unsafe { std::slice::from_raw_parts_mut(sink.at(at), count) };
                finish(out, sums, (*of_row, of_cols), block.add);
            }
        }
    }

    /// What the operands are moved by: the left one down where it is unsigned, the right one up where it is signed.
    fn moved(&self) -> (i32, i32) {
        (if self.a.signed { 0 } else { 128 }, if self.b.signed { 128 } else { 0 })
    }

    /// Rows of the left operand as signed bytes, each padded to whole steps; and what is added to the sums of each for the bytes that were moved.
    fn pack_left(&self, rows: &Range<usize>, run: &Range<usize>, strip: &mut [i8]) -> [i32; ROWS] {
        let flip = if self.a.signed { 0 } else { 0x80 };
        let padded = run.len().next_multiple_of(STEP);
        let (down, up) = self.moved();
        let mut added = [0; ROWS];
        for ((row, out), added) in rows.clone().zip(strip.chunks_exact_mut(padded)).zip(&mut added)
        {
            let (out, rest) = out.split_at_mut(run.len());
            let from = self.a.at(row, run.start);
            if self.a.strides.col == 1 {
                flipped(&self.a.data[from..][..run.len()], flip, out);
            } else {
                for (to, k) in out.iter_mut().zip(run.clone()) {
                    *to = (self.a.data[self.a.at(row, k)] ^ flip) as i8;
                }
            }
            rest.fill(0);
            if up != 0 {
                let sum: i32 = out.iter().map(|x| i32::from(*x)).sum();
                *added = -up * sum - up * down * run.len() as i32;
            }
        }
        added
    }

    /// Columns of the right operand as unsigned bytes, in panels; and what is added to the sums of each for the bytes that were moved.
    fn pack_right(
        &self,
        cols: &Range<usize>,
        run: &Range<usize>,
        panels: &mut [u8],
    ) -> [i32; WIDE] {
        let padded = run.len().next_multiple_of(STEP);
        let mut added = [0; WIDE];
        let by_rows = self.pack_rows(cols, run, panels);
        let starts = cols.clone().step_by(COLS);
        let each = panels.chunks_exact_mut(padded * COLS).zip(added.chunks_exact_mut(COLS));
        for (col, (panel, added)) in starts.zip(each) {
            let whole = col + COLS <= cols.end;
            let first = if whole { by_rows } else { 0 };
            self.pack_panel(&(col..cols.end.min(col + COLS)), run, first, panel);
            let (down, _) = self.moved();
            if down != 0 {
                let mut sums: Sums = [[0; COLS]; ROWS];
                self.level.tile(1, &ONES[..padded], panel, &mut sums);
                added.iter_mut().zip(&sums[0]).for_each(|(added, sum)| *added = down * sum);
            }
        }
        added
    }

    /// Whole steps of whole panels, of a matrix whose rows lie in one piece: all panels of a step before the next one, so that memory is
    /// read in its order. The number of those steps.
    fn pack_rows(&self, cols: &Range<usize>, run: &Range<usize>, panels: &mut [u8]) -> usize {
        /// Steps from those that are read to those that are asked for.
        const AHEAD: usize = 2;
        let (b, flip) = (self.b, if self.b.signed { 0x80 } else { 0 });
        let whole = cols.len() / COLS;
        if b.strides.col != 1 || whole == 0 {
            return 0;
        }
        let each = run.len().next_multiple_of(STEP) * COLS;
        let steps = run.len() / STEP;
        for step in 0..steps {
            let rows: [&[u8]; STEP] = std::array::from_fn(|i| {
                let k = run.start + step * STEP + i;
                let ahead = b.strides.row * (AHEAD * STEP) as isize;
                let from = b.at(k, cols.start);
                fetch(b.data.as_ptr().wrapping_add(from).wrapping_offset(ahead), whole * COLS);
                &b.data[from..][..whole * COLS]
            });
            for p in 0..whole {
                let row = |i: usize| rows[i][p * COLS..].first_chunk::<COLS>();
                let out = panels[p * each + step * STEP * COLS..].first_chunk_mut();
                if let (Some(first), Some(second), Some(third), Some(fourth), Some(out)) =
                    (row(0), row(1), row(2), row(3), out)
                {
                    interleave([first, second, third, fourth], flip, out);
                }
            }
        }
        steps
    }

    /// Steps of one panel from the first that is missing on.
    fn pack_panel(&self, cols: &Range<usize>, run: &Range<usize>, first: usize, panel: &mut [u8]) {
        let flip = if self.b.signed { 0x80 } else { 0 };
        let b = self.b;
        let (panel, _) = panel.as_chunks_mut::<{ STEP * COLS }>();
        let mut first = first;
        if b.strides.row == 1 && first == 0 {
            // Columns lie in one piece each.
            first = run.len() / STEP;
            panel[..first].iter_mut().for_each(|out| out[cols.len() * STEP..].fill(0));
            let flip = u32::from_ne_bytes([flip; STEP]);
            for i in 0..cols.len() {
                let from = &b.data[b.at(run.start, cols.start + i)..][..first * STEP];
                for (word, out) in from.as_chunks::<STEP>().0.iter().zip(&mut *panel) {
                    let (words, _) = out.as_chunks_mut::<STEP>();
                    words[i] = (u32::from_ne_bytes(*word) ^ flip).to_ne_bytes();
                }
            }
        }
        for (step, out) in panel.iter_mut().enumerate().skip(first) {
            let k = run.start + step * STEP;
            let count = STEP.min(run.end - k);
            let (words, _) = out.as_chunks_mut::<STEP>();
            for (i, word) in words.iter_mut().enumerate() {
                *word = [0; STEP];
                if i >= cols.len() {
                    continue;
                }
                for (step, to) in word.iter_mut().enumerate().take(count) {
                    *to = b.data[b.at(k + step, cols.start + i)] ^ flip;
                }
            }
        }
    }
}

/// Unsigned bytes as signed ones, moved by 128, or signed ones as they are.
fn flipped(from: &[u8], flip: u8, to: &mut [i8]) {
    for i in 0..from.len().min(to.len()) {
        to[i] = (from[i] ^ flip) as i8;
    }
}

/// Writes a row of a tile with what is added for the bytes that were moved, or adds it to what is there.
fn finish(out: &mut [i32], sums: &[i32; COLS], (of_row, of_cols): (i32, &[i32]), add: bool) {
    let moved = |sum: i32, of_col: i32| sum.wrapping_add(of_row).wrapping_add(of_col);
    // Loops over a whole panel have a known length, and are vectors without a rest.
    if let (Some(out), Some(of_cols)) =
        (out.first_chunk_mut::<COLS>(), of_cols.first_chunk::<COLS>())
    {
        for i in 0..COLS {
            let before = if add { out[i] } else { 0 };
            out[i] = before.wrapping_add(moved(sums[i], of_cols[i]));
        }
        return;
    }
    for ((out, sum), of_col) in out.iter_mut().zip(sums).zip(of_cols) {
        let sum = moved(*sum, *of_col);
        *out = if add { out.wrapping_add(sum) } else { sum };
    }
}

/// A row of ones: its products are the sums of columns.
static ONES: [i8; DEEP] = [1; DEEP];

/// A strip of rows beside a block of columns.
struct IntegerBlock<'a> {
    /// Rows, columns, and steps of K.
    sizes: [usize; 3],
    strip: &'a [i8],
    panels: &'a [u8],
    /// What is added to the sums of each row, and of each column.
    of_rows: [i32; ROWS],
    of_cols: &'a [i32; WIDE],
    /// To what the result holds.
    add: bool,
}
