//! One product from the outside in: pieces for threads, and a piece's parts through one of the paths.
//!
//! Decision: `docs/decisions/more-parts-than-threads.md`.

#![allow(
    unsafe_code,
    reason = "threads write to one result whose rows interleave, through a pointer"
)]

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_ops::linalg::Size;
use tonnage_simd::product::{GemmLevel, GemmOutput, MicroKernel};

use super::epilogue::{BlockEpilogue, BlockPosition, OutputBlock};
use super::operand::GemmOperand;
use super::plan::{GemmPath, GemmPlan, TOLD_APART};
use super::target::RowLayout;
use crate::workers::Workers;

/// All that the threads of one call share.
pub(super) struct GemmJob<'a, O: GemmOutput> {
    pub size: Size,
    pub a: &'a dyn GemmOperand<O::Compute>,
    pub b: &'a dyn GemmOperand<O::Compute>,
    pub c: OutputSink<O>,
    pub epilogue: &'a dyn BlockEpilogue<O::Compute>,
    /// Which instructions there are.
    pub level: GemmLevel,
    pub kernel: &'static MicroKernel<O::Compute>,
    pub plan: GemmPlan,
    /// Which shares of the work somebody has taken.
    pub taken: AtomicU64,
    /// The threads, which say whether to stop: blocks that are left are not computed then.
    pub workers: &'a dyn Workers,
}

/// Where the result goes. Rows do not overlap, nor do matrices: who made it has checked it.
pub(super) struct OutputSink<O> {
    data: *mut O,
    batch: usize,
    rows: RowLayout,
    pub add: bool,
}

// SAFETY: threads reach disjoint elements only, as the parts of a plan are disjoint.
unsafe impl<O: Send> Sync for OutputSink<O> {}

impl<O> OutputSink<O> {
    /// `data` must stay valid and unshared while the sink is used.
    pub fn new(data: *mut O, batch: usize, rows: RowLayout, add: bool) -> OutputSink<O> {
        OutputSink { data, batch, rows, add }
    }

    /// The pointer to an element.
    ///
    /// # Safety
    /// The position must lie in the result.
    pub unsafe fn at(&self, at: BlockPosition) -> *mut O {
        let row = match &self.rows {
            RowLayout::Every(stride) => at.row * stride,
            RowLayout::Grid(grid) => grid.at(at.row),
        };
        // SAFETY: by the caller, inside.
        unsafe { self.data.add(at.batch * self.batch + row + at.col) }
    }

    /// Whether rows lie as a grid counts.
    pub fn is_grid(&self) -> bool {
        matches!(self.rows, RowLayout::Grid(_))
    }

    /// From one row to the next, where they lie evenly.
    pub fn row_stride(&self) -> isize {
        match self.rows {
            RowLayout::Every(stride) => stride as isize,
            RowLayout::Grid(_) => 0,
        }
    }

    /// A part of one row.
    ///
    /// # Safety
    /// It must lie in the result and be the caller's own.
    #[allow(clippy::mut_from_ref, reason = "threads hold disjoint parts through one sink")]
    unsafe fn row(&self, at: BlockPosition, cols: usize) -> &mut [O] {
        // SAFETY: by the caller, inside and its own; rows do not overlap.
        unsafe { std::slice::from_raw_parts_mut(self.at(at), cols) }
    }
}

impl<O: GemmOutput> GemmJob<'_, O> {
    /// Runs `count` pieces from `first` on; `space` has a slot for each.
    pub fn pieces(&self, first: usize, count: usize, space: &mut [O::Compute]) {
        if count == 1 {
            return self.piece(first, space);
        }
        let half = count / 2;
        let (left, right) = space.split_at_mut(half * self.plan.slot);
        self.workers.join(&mut || self.pieces(first, half, left), &mut || {
            self.pieces(first + half, count - half, right);
        });
    }

    /// A piece's own shares, and then what others have not begun, the last first. Who computes a share changes no bit
    /// of it.
    fn piece(&self, piece: usize, space: &mut [O::Compute]) {
        let own = self.plan.own(piece);
        if self.plan.pieces == 1 || self.plan.shares > TOLD_APART {
            return self.items(self.plan.items(own), space);
        }
        let others = (0..self.plan.shares).rev().filter(|share| !own.contains(share));
        for share in own.clone().chain(others) {
            let bit = 1 << share;
            if self.taken.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                self.items(self.plan.items(share..share + 1), space);
            }
        }
    }

    fn items(&self, items: Range<usize>, space: &mut [O::Compute]) {
        for item in items {
            if self.workers.is_stopped() {
                return;
            }
            let (batch, rows, cols) = self.plan.item(item);
            if rows.is_empty() || cols.is_empty() {
                continue;
            }
            // A K-major right operand has to be transposed, and blocks are large enough to do that well.
            let path = match self.plan.path {
                GemmPath::SkinnyRows if self.b.is_k_major() => GemmPath::Tiles,
                path => path,
            };
            match path {
                // Compiled for results that have such products alone.
                GemmPath::Bf16Dot => {
                    if O::HAS_BF16_DOT {
                        self.bf16_dot(batch, rows, cols, space);
                    }
                }
                GemmPath::Tiles => match self.plan.sums_in_scratch() {
                    false => self.in_place(batch, rows, cols, space),
                    true => self.rounded(batch, rows, cols, space),
                },
                GemmPath::GemvRows | GemmPath::SkinnyRows => {
                    self.gemv(self.a, self.b, batch, cols, false, space)
                }
                GemmPath::GemvCols => self.gemv(self.b, self.a, batch, rows, true, space),
            }
        }
    }

    /// Hands finished sums in scratch to the epilogue, then rounds them into the result. `lie` is the number of rows, of
    /// columns, and the stride from one row to the next.
    pub(super) fn finish_rows(&self, at: BlockPosition, lie: [usize; 3], sums: &mut [O::Compute]) {
        let [rows, cols, stride] = lie;
        // All of its rows lie in the slice.
        let sums = &mut sums[..rows.saturating_sub(1) * stride + cols];
        // SAFETY: as was just seen; rows are apart, and `sums` is borrowed for as long.
        let mut block =
            unsafe { OutputBlock::new(at, rows, cols, sums.as_mut_ptr(), stride as isize) };
        self.epilogue.apply(&mut block);
        self.store(at, lie, sums);
    }

    /// Rounds finished rows, which lie as above, into the result.
    pub(super) fn store(
        &self,
        at: BlockPosition,
        [rows, cols, stride]: [usize; 3],
        sums: &[O::Compute],
    ) {
        O::store_rows((0..rows).map(|i| {
            let at = BlockPosition { row: at.row + i, ..at };
            // SAFETY: rows of the part that this piece computes.
            (&sums[i * stride..][..cols], unsafe { self.c.row(at, cols) })
        }));
    }

    /// What the result holds, widened, into rows as above.
    pub(super) fn load(
        &self,
        at: BlockPosition,
        [rows, cols, stride]: [usize; 3],
        sums: &mut [O::Compute],
    ) {
        for (i, sums) in sums.chunks_mut(stride).take(rows).enumerate() {
            let at = BlockPosition { row: at.row + i, ..at };
            // SAFETY: rows of the part that this piece computes.
            O::load(unsafe { self.c.row(at, cols) }, &mut sums[..cols]);
        }
    }
}
