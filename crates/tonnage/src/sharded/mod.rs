//! Tensors in pieces: blocks of rows, or a grid of blocks, each in memory, a recipe or in a file.
//!
//! Ops go block by block, so that no more is in memory than the block in hand and what is made of it. Blocks that are recipes stay so
//! under elementwise ops: a `Sharded` over files takes a few bytes, whatever is done to it before somebody reads it.

mod chunks;
mod ops;

pub use chunks::{Chunk, ChunkRows};

use std::ops::Range;
use std::path::Path;

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Error, Result, Source, TensorType};

use crate::io::constant_from_file;
use crate::part::Part;
use crate::tensor::Tensor;

/// A tensor in blocks: cut along its first axis, and along its second too where it is a grid.
///
/// ```
/// use tonnage::{Sharded, tensor};
/// let blocks = [tensor([[1.0f32, 2.0]])?, tensor([[3.0f32, 4.0], [5.0, 6.0]])?];
/// let x = Sharded::rows(blocks)?;
/// assert_eq!(x.ty().to_string(), "f32[3, 2]");
/// assert_eq!(x.map(|block| block * 2.0)?.sum(0)?.to_vec::<f32>()?, [18.0, 24.0]);
/// assert_eq!(x.slice(1..2)?.to_tensor()?.to_vec::<f32>()?, [3.0, 4.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sharded {
    /// Rows of blocks.
    grid: Vec<Vec<Tensor>>,
    dtype: DType,
    /// Of the whole.
    sizes: Vec<usize>,
}

impl Sharded {
    /// Blocks one below the other.
    ///
    /// # Errors
    /// Where there are none, or they differ in dtype or in another axis than the first.
    #[track_caller]
    pub fn rows(blocks: impl IntoIterator<Item = Tensor>) -> Result<Sharded> {
        let source = Source::here();
        let grid = blocks.into_iter().map(|block| vec![block]).collect();
        Sharded::checked(grid).map_err(|e| e.at(source))
    }

    /// Rows of blocks: those of a row side by side, along the second axis, and rows one below the other.
    ///
    /// # Errors
    /// Where blocks do not fit together.
    #[track_caller]
    pub fn grid(blocks: Vec<Vec<Tensor>>) -> Result<Sharded> {
        let source = Source::here();
        Sharded::checked(blocks).map_err(|e| e.at(source))
    }

    /// The tensors of that name in several files, one below the other; they stay there. Without a name each file has to hold one tensor.
    ///
    /// # Errors
    /// Where a file cannot be opened, holds no such tensor, or they do not fit together.
    #[track_caller]
    pub fn open<P: AsRef<Path>>(
        files: impl IntoIterator<Item = P>,
        name: Option<&str>,
    ) -> Result<Sharded> {
        let source = Source::here();
        let open = |path: P| Ok(vec![constant_from_file(path, name)?]);
        let blocks = files.into_iter().map(open).collect::<Result<_>>();
        blocks.and_then(Sharded::checked).map_err(|e| e.at(source))
    }

    fn checked(grid: Vec<Vec<Tensor>>) -> Result<Sharded> {
        let wrong = |what: String, help: &str| bad_argument("sharded", what, help);
        let Some(first) = grid.first().and_then(|row| row.first()) else {
            return Err(wrong("no blocks".into(), "give at least one"));
        };
        let (dtype, mut sizes) = (first.dtype(), sizes_of(first)?);
        let wide = grid.iter().any(|row| row.len() != 1);
        if sizes.len() < if wide { 2 } else { 1 } {
            return Err(wrong(format!("a block is {}", first.ty()), "blocks have rows"));
        }
        sizes[0] = 0;
        // Where the blocks of a row end, by the first row.
        let widths = match wide {
            true => grid[0].iter().map(|b| Ok(sizes_of(b)?[1])).collect::<Result<Vec<_>>>()?,
            false => vec![],
        };
        if wide {
            sizes[1] = widths.iter().sum();
        }
        for row in &grid {
            let mut rows = None;
            if wide && row.len() != widths.len() {
                let what = format!("rows of {} and of {} blocks", widths.len(), row.len());
                return Err(wrong(what, "a grid has as many in each row"));
            }
            for (column, block) in row.iter().enumerate() {
                let own = sizes_of(block)?;
                let mut wanted = sizes.clone();
                if let (Some(wanted), Some(width)) = (wanted.get_mut(1), widths.get(column)) {
                    *wanted = *width;
                }
                wanted[0] = rows.unwrap_or(own.first().copied().unwrap_or(0));
                rows = Some(wanted[0]);
                if block.dtype() != dtype || own != wanted {
                    let wanted = TensorType::new(dtype, &wanted[..]);
                    let what = format!("a block of {} where {wanted} would fit", block.ty());
                    return Err(wrong(what, "cast or reshape it"));
                }
            }
            sizes[0] += rows.unwrap_or(0);
        }
        Ok(Sharded { grid, dtype, sizes })
    }

    /// Dtype and shape of the whole.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype, &self.sizes[..])
    }

    /// Its blocks, by rows.
    pub fn blocks(&self) -> impl Iterator<Item = &[Tensor]> {
        self.grid.iter().map(Vec::as_slice)
    }

    /// Some rows of it. Nothing is read or copied.
    ///
    /// # Errors
    /// Where it has no such rows.
    #[track_caller]
    pub fn slice(&self, rows: Range<usize>) -> Result<Sharded> {
        let source = Source::here();
        self.sliced(rows).map_err(|e| e.at(source))
    }

    fn sliced(&self, rows: Range<usize>) -> Result<Sharded> {
        if rows.start > rows.end || rows.end > self.sizes[0] {
            return Err(self.no_rows(&format!("{rows:?}")));
        }
        let (mut grid, mut first) = (Vec::new(), 0);
        for row in &self.grid {
            let count = sizes_of(&row[0])?[0];
            let (start, end) = (rows.start.max(first), rows.end.min(first + count));
            if start < end || (rows.is_empty() && grid.is_empty()) {
                let (start, end) =
                    (start.min(end).saturating_sub(first), end.saturating_sub(first));
                let part = Part::from(start as i64..end as i64);
                let cut = |block: &Tensor| match end - start == count {
                    true => Ok(block.clone()),
                    false => block.slice(&[part]),
                };
                grid.push(row.iter().map(cut).collect::<Result<Vec<_>>>()?);
            }
            first += count;
        }
        let mut sizes = self.sizes.clone();
        sizes[0] = rows.len();
        Ok(Sharded { grid, dtype: self.dtype, sizes })
    }

    fn no_rows(&self, asked: &str) -> Error {
        let what = format!("the rows {asked} of {}", self.ty());
        bad_argument("sharded", what, "ask for rows that it has")
    }
}

/// The sizes of a block, which has to be concrete.
fn sizes_of(block: &Tensor) -> Result<Vec<usize>> {
    Ok(block.array("sharded")?.sizes().to_vec())
}
