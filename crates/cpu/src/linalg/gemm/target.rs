//! Where results go: into rows that lie evenly, or wherever a grid of axes puts them.

#![allow(unsafe_code, reason = "threads hold columns of one result, whose rows interleave")]

use std::marker::PhantomData;
use std::ops::Range;

use tonnage_core::{ErrorKind, Result};
use tonnage_ops::linalg::Size;

use super::run::OutputSink;

/// Where a batch of results goes: rows of `cols` elements side by side.
#[derive(Debug)]
pub struct Target<'a, O> {
    /// What is written to.
    pub data: &'a mut [O],
    /// From one matrix of the batch to the next, in elements. Ignored where there is one.
    pub batch_stride: usize,
    /// Where the rows of a matrix lie.
    pub rows: RowLayout,
    /// Add the product to what is there, rather than overwrite it.
    pub add: bool,
}

/// Where the rows of a result lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLayout {
    /// That many elements apart. Ignored where there is one.
    Every(usize),
    /// As a grid counts: some pixels of an image. Sums are kept in scratch then, for a tile needs even rows.
    Grid(Grid),
}

/// Rows on four axes, the last one fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Where the first row lies.
    pub start: usize,
    /// How many along each axis; their product is the number of rows.
    pub lengths: [usize; 4],
    /// From one to the next along each axis, in elements.
    pub strides: [usize; 4],
}

impl Grid {
    /// Where a row lies.
    pub(super) fn at(&self, row: usize) -> usize {
        let (mut at, mut rest) = (self.start, row);
        for axis in (1..4).rev() {
            at += rest % self.lengths[axis] * self.strides[axis];
            rest /= self.lengths[axis];
        }
        at + rest * self.strides[0]
    }
}

impl<'a, O> Target<'a, O> {
    /// Matrices one after the other, overwritten.
    pub fn new(data: &'a mut [O], size: Size) -> Target<'a, O> {
        let (batch_stride, rows) = (size.rows * size.cols, RowLayout::Every(size.cols));
        Target { data, batch_stride, rows, add: false }
    }

    /// The same, added to.
    #[must_use]
    pub fn adding(self) -> Target<'a, O> {
        Target { add: true, ..self }
    }

    /// The same for threads to write to, once its rows are known to be apart and inside.
    pub(super) fn sink(self, size: Size) -> Result<OutputSink<O>> {
        if !size.is_empty() {
            self.check(size)?;
        }
        Ok(OutputSink::new(self.data.as_mut_ptr(), self.batch_stride, self.rows, self.add))
    }

    /// Refuses rows that overlap or leave the slice. Any stride may be the larger one.
    fn check(&self, size: Size) -> Result<()> {
        let mut axes = [(size.batch, self.batch_stride), (1, 0), (1, 0), (1, 0), (1, 0)];
        let (mut extent, mut counts) = (Some(size.cols), true);
        match self.rows {
            RowLayout::Every(stride) => axes[1] = (size.rows, stride),
            RowLayout::Grid(grid) => {
                let pairs = grid.lengths.into_iter().zip(grid.strides);
                axes[1..].iter_mut().zip(pairs).for_each(|(axis, pair)| *axis = pair);
                let product =
                    grid.lengths.iter().try_fold(1usize, |n, length| n.checked_mul(*length));
                counts = product == Some(size.rows);
                extent = extent.filter(|_| grid.start <= self.data.len());
            }
        }
        axes.sort_by_key(|&(count, stride)| (count > 1, stride));
        for (count, stride) in axes {
            if count > 1 {
                let reach = stride.checked_mul(count - 1);
                let fits = extent.is_some_and(|extent| stride >= extent);
                extent = reach
                    .zip(extent)
                    .filter(|_| fits)
                    .and_then(|(reach, extent)| reach.checked_add(extent));
            }
        }
        let start = if let RowLayout::Grid(grid) = self.rows { grid.start } else { 0 };
        let room = self.data.len().saturating_sub(start);
        if counts && extent.is_some_and(|extent| extent <= room) {
            return Ok(());
        }
        let what = format!(
            "matrices {} apart with rows at {:?} for {size:?} overlap or leave a slice of {} elements",
            self.batch_stride,
            self.rows,
            self.data.len()
        );
        let help = "use strides that keep rows apart and inside".to_string();
        Err(ErrorKind::BadArgument { op: "matmul", what, help }.into())
    }
}

/// Some rows and columns of one result, which nobody else holds: where a product that is computed in parts goes.
#[derive(Debug)]
pub(crate) struct Area<'a, O> {
    /// The first element of the result, held or not.
    data: *mut O,
    /// From one row to the next.
    stride: usize,
    rows: Range<usize>,
    cols: Range<usize>,
    life: PhantomData<&'a mut [O]>,
}

// SAFETY: what it holds is held as by a slice that is borrowed for writing.
unsafe impl<O: Send> Send for Area<'_, O> {}

impl<'a, O> Area<'a, O> {
    /// All of a result: rows that follow each other.
    pub fn all(data: &'a mut [O], cols: usize) -> Area<'a, O> {
        let rows = 0..data.len() / cols.max(1);
        Area { data: data.as_mut_ptr(), stride: cols, rows, cols: 0..cols, life: PhantomData }
    }

    /// What it holds before a row, and from it on.
    pub fn split_at_row(&mut self, row: usize) -> (Area<'_, O>, Area<'_, O>) {
        let row = row.clamp(self.rows.start, self.rows.end);
        let part = |rows| Area { rows, cols: self.cols.clone(), life: PhantomData, ..*self };
        (part(self.rows.start..row), part(row..self.rows.end))
    }

    /// What it holds before a column, and from it on.
    pub fn split_at_col(&mut self, col: usize) -> (Area<'_, O>, Area<'_, O>) {
        let col = col.clamp(self.cols.start, self.cols.end);
        let part = |cols| Area { cols, rows: self.rows.clone(), life: PhantomData, ..*self };
        (part(self.cols.start..col), part(col..self.cols.end))
    }

    /// A part of it from a row and a column of the result on, of matrices that have `each` rows.
    pub(super) fn sink(
        &mut self,
        (row, col): (usize, usize),
        size: Size,
        each: usize,
        add: bool,
    ) -> OutputSink<O> {
        let (last_row, last_col) =
            (row + size.batch.saturating_sub(1) * each + size.rows, col + size.cols);
        let holds = |all: &Range<usize>, from, to| all.start <= from && to <= all.end;
        let inside = holds(&self.rows, row, last_row) && holds(&self.cols, col, last_col);
        assert!(inside, "a part of a product that leaves what it was lent");
        let data = self.data.wrapping_add(row * self.stride + col);
        OutputSink::new(data, each * self.stride, RowLayout::Every(self.stride), add)
    }
}
