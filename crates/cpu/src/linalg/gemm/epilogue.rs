//! What happens to a block of the result once its sums are complete, while it is still in cache.

#![allow(
    unsafe_code,
    reason = "threads share a result whose rows interleave, so blocks hold pointers"
)]

use std::marker::PhantomData;

use bytemuck::{Pod, cast_slice_mut};

use crate::kernel::{Epilogue, Parts};

/// Work on finished blocks: a bias, an activation.
///
/// It sees every element of the result once, before the result is rounded to its dtype. How the result is cut
/// into blocks is open (it varies with threads), so what it does to an element may depend on the
/// element's position and value alone.
pub trait BlockEpilogue<C>: Sync {
    /// Works on a block in place.
    fn apply(&self, block: &mut OutputBlock<'_, C>);
}

/// Leaves the sums as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEpilogue;

impl<C> BlockEpilogue<C> for NoEpilogue {
    #[inline(always)]
    fn apply(&self, _: &mut OutputBlock<'_, C>) {}
}

/// Hands finished rows over to the step behind this one.
#[derive(Clone, Copy)]
pub struct OutputEpilogue<'a> {
    /// That step.
    pub epilogue: &'a dyn Epilogue,
    /// The position of the result's first element, from one matrix of the batch to the next, and from one row to the next.
    pub start: usize,
    /// See `start`.
    pub batch: usize,
    /// See `start`.
    pub row: usize,
}

impl<C: Pod> BlockEpilogue<C> for Option<OutputEpilogue<'_>> {
    #[inline(always)]
    fn apply(&self, block: &mut OutputBlock<'_, C>) {
        let Some(to) = self else { return };
        let BlockPosition { batch, row, col } = block.at;
        let first = to.start + batch * to.batch + row * to.row + col;
        // Whole rows that follow each other are one run.
        let whole_rows = block.cols == to.row;
        match block.whole().filter(|_| whole_rows) {
            Some(all) => to.epilogue.apply(&mut (first, cast_slice_mut(all))),
            None => to.epilogue.apply(&mut BlockRows { block, first, row: to.row }),
        }
    }
}

/// The rows of a block, as parts of the result.
struct BlockRows<'b, 'a, C> {
    block: &'b mut OutputBlock<'a, C>,
    first: usize,
    row: usize,
}

impl<C: Pod> Parts for BlockRows<'_, '_, C> {
    fn count(&self) -> usize {
        self.block.rows
    }

    fn part(&mut self, i: usize) -> (usize, &mut [u8]) {
        (self.first + i * self.row, cast_slice_mut(self.block.row(i)))
    }
}

/// A finished block of the result, given out row by row.
pub struct OutputBlock<'a, C> {
    at: BlockPosition,
    rows: usize,
    cols: usize,
    data: *mut C,
    row_stride: isize,
    life: PhantomData<&'a mut C>,
}

/// Where a block starts in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPosition {
    /// Which matrix of the batch.
    pub batch: usize,
    /// Its row.
    pub row: usize,
    /// Its column.
    pub col: usize,
}

impl<C> OutputBlock<'_, C> {
    /// # Safety
    /// Every row must be valid for reads and writes of `cols` elements while the block lives, apart from each
    /// other and untouched by anyone else.
    pub(super) unsafe fn new(
        at: BlockPosition,
        rows: usize,
        cols: usize,
        data: *mut C,
        row_stride: isize,
    ) -> Self {
        OutputBlock { at, rows, cols, data, row_stride, life: PhantomData }
    }

    /// Where its first element stands in the result.
    pub fn at(&self) -> BlockPosition {
        self.at
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns it has.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All of it, where its rows lie close together.
    fn whole(&mut self) -> Option<&mut [C]> {
        if self.row_stride != self.cols as isize {
            return None;
        }
        // SAFETY: by `new`, each row is valid, and each begins where the one before it ends.
        Some(unsafe { std::slice::from_raw_parts_mut(self.data, self.rows * self.cols) })
    }

    /// Row `i` of the block; the empty slice beyond its last.
    pub fn row(&mut self, i: usize) -> &mut [C] {
        if i >= self.rows {
            return &mut [];
        }
        // SAFETY: by `new`, row `i` is valid for `cols` elements, and `&mut self` keeps it to one holder.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.data.offset(i as isize * self.row_stride),
                self.cols,
            )
        }
    }
}
