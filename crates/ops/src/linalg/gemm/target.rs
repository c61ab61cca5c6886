//! Where results go: into rows that lie evenly, or wherever a grid of axes puts them.

use tonnage_core::{ErrorKind, Result};

use super::plan::Size;

/// Where a batch of results goes: rows of `cols` elements side by side.
#[derive(Debug)]
pub struct Target<'a, O> {
    /// What is written to.
    pub data: &'a mut [O],
    /// From one matrix of the batch to the next, in elements. Ignored where there is one.
    pub batch_stride: usize,
    /// Where the rows of a matrix lie.
    pub rows: Rows,
    /// Add the product to what is there, rather than overwrite it.
    pub add: bool,
}

/// Where the rows of a result lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// So many elements apart. Ignored where there is one.
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
        let (batch_stride, rows) = (size.rows * size.cols, Rows::Every(size.cols));
        Target { data, batch_stride, rows, add: false }
    }

    /// The same, added to.
    #[must_use]
    pub fn adding(self) -> Target<'a, O> {
        Target { add: true, ..self }
    }

    /// Refuses rows that overlap or leave the slice. Any stride may be the larger one.
    pub(super) fn check(&self, size: Size) -> Result<()> {
        let mut axes = [(size.batch, self.batch_stride), (1, 0), (1, 0), (1, 0), (1, 0)];
        let (mut extent, mut counts) = (Some(size.cols), true);
        match self.rows {
            Rows::Every(stride) => axes[1] = (size.rows, stride),
            Rows::Grid(grid) => {
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
        let start = if let Rows::Grid(grid) = self.rows { grid.start } else { 0 };
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
