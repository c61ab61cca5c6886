//! One product from the outside in: pieces for threads, and a piece's parts through one of the paths.

#![allow(
    unsafe_code,
    reason = "threads write to one result whose rows interleave, through a pointer"
)]

use tonnage_core::Workers;

use super::compute::Output;
use super::epilogue::{Block, Epilogue, Position};
use super::kernel::Kernel;
use super::operand::Operand;
use super::plan::{Path, Plan, Size};

/// All that the threads of one call share.
pub(super) struct Job<'a, A, B, O: Output, E> {
    pub size: Size,
    pub a: &'a A,
    pub b: &'a B,
    pub c: Sink<O>,
    pub epilogue: &'a E,
    pub kernel: &'static Kernel<O::Compute>,
    pub plan: Plan,
}

/// Where the result goes. Rows do not overlap, nor do matrices: `gemm` has checked it.
pub(super) struct Sink<O> {
    data: *mut O,
    batch: usize,
    row: usize,
    pub add: bool,
}

// SAFETY: threads reach disjoint elements only, as the parts of a plan are disjoint.
unsafe impl<O: Send> Sync for Sink<O> {}

impl<O> Sink<O> {
    /// `data` must stay valid and unshared while the sink is used.
    pub fn new(data: *mut O, batch: usize, row: usize, add: bool) -> Sink<O> {
        Sink { data, batch, row, add }
    }

    /// The pointer to an element and the stride between rows.
    ///
    /// # Safety
    /// The position must lie in the result.
    pub unsafe fn at(&self, at: Position) -> (*mut O, isize) {
        let offset = at.batch * self.batch + at.row * self.row + at.col;
        // SAFETY: by the caller, inside.
        (unsafe { self.data.add(offset) }, self.row as isize)
    }

    /// A part of the result, row by row.
    ///
    /// # Safety
    /// It must lie in the result and be the caller's own.
    unsafe fn block(&self, at: Position, rows: usize, cols: usize) -> Block<'_, O> {
        // SAFETY: by the caller, inside and its own; rows do not overlap.
        unsafe {
            let (data, row) = self.at(at);
            Block::new(at, rows, cols, data, row)
        }
    }
}

impl<A, B, O, E> Job<'_, A, B, O, E>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: Epilogue<O::Compute>,
{
    /// Runs `count` pieces from `first` on; `space` has a slot for each.
    pub fn pieces(
        &self,
        workers: &dyn Workers,
        first: usize,
        count: usize,
        space: &mut [O::Compute],
    ) {
        if count == 1 {
            return self.piece(first, space);
        }
        let half = count / 2;
        let (left, right) = space.split_at_mut(half * self.plan.slot);
        workers.join(&mut || self.pieces(workers, first, half, left), &mut || {
            self.pieces(workers, first + half, count - half, right);
        });
    }

    fn piece(&self, piece: usize, space: &mut [O::Compute]) {
        for item in self.plan.items(piece) {
            let (batch, rows, cols) = self.plan.item(item);
            if rows.is_empty() || cols.is_empty() {
                continue;
            }
            match self.plan.path {
                Path::Tiles if O::IS_COMPUTE => self.in_place(batch, rows, cols, space),
                Path::Tiles => self.rounded(batch, rows, cols, space),
                Path::FewRows => self.few(self.a, self.b, batch, cols, false, space),
                Path::FewCols => self.few(self.b, self.a, batch, rows, true, space),
            }
        }
    }

    /// Hands finished sums in scratch to the epilogue, then rounds them into the result.
    pub(super) fn finish(&self, at: Position, rows: usize, cols: usize, sums: &mut [O::Compute]) {
        // SAFETY: `sums` holds `rows` rows of `cols` elements, and is borrowed for as long.
        let mut block = unsafe { Block::new(at, rows, cols, sums.as_mut_ptr(), cols as isize) };
        self.epilogue.finish(&mut block);
        self.store(at, cols, sums);
    }

    /// Rounds rows of `cols` finished elements into the result.
    pub(super) fn store(&self, at: Position, cols: usize, sums: &[O::Compute]) {
        // SAFETY: rows of the part that this piece computes.
        let mut block = unsafe { self.c.block(at, sums.len() / cols, cols) };
        for (i, sums) in sums.chunks_exact(cols).enumerate() {
            O::store(sums, block.row(i));
        }
    }

    /// What the result holds, widened.
    pub(super) fn load(&self, at: Position, cols: usize, sums: &mut [O::Compute]) {
        // SAFETY: rows of the part that this piece computes.
        let mut block = unsafe { self.c.block(at, sums.len() / cols, cols) };
        for (i, sums) in sums.chunks_exact_mut(cols).enumerate() {
            O::load(block.row(i), sums);
        }
    }
}
