//! Ops of tensors in pieces, block by block.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result, Source};

use super::{Sharded, sizes_of};
use crate::ops::{Elementwise, concat};
use crate::part::{Axes, Part};
use crate::tensor::Tensor;

/// How partial results of blocks become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockReduction {
    Sum,
    Max,
    Min,
}

impl Sharded {
    /// Something elementwise of every block. Of recipes, as of files, it is a recipe: nothing is read.
    ///
    /// ```
    /// use tonnage::{Sharded, tensor};
    /// let x = Sharded::rows([tensor([1.0f32, 2.0])?, tensor([3.0f32])?])?;
    /// let y = x.map(|block| (block * 2.0)? + 1.0)?;
    /// assert_eq!(y.to_tensor()?.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where `f` fails, or what it makes is not of the block's shape.
    #[track_caller]
    pub fn map(&self, mut f: impl FnMut(&Tensor) -> Result<Tensor>) -> Result<Sharded> {
        let source = Source::here();
        let mut each = |block: &Tensor| {
            let made = f(block)?;
            same_shape(block, &made)?;
            Ok(made)
        };
        let grid = self.grid.iter().map(|row| row.iter().map(&mut each).collect()).collect();
        let grid: Result<Vec<Vec<Tensor>>> = grid;
        grid.and_then(Sharded::checked).map_err(|e| e.at(source))
    }

    /// Something elementwise of this and another of its shape, which may be cut otherwise: that one is cut as this one is.
    ///
    /// # Errors
    /// Where shapes differ, or `f` fails.
    #[track_caller]
    pub fn zip(
        &self,
        other: &Sharded,
        mut f: impl FnMut(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Sharded> {
        let source = Source::here();
        let mut all = || {
            if self.sizes != other.sizes {
                let what = format!("{} and {}", self.ty(), other.ty());
                return Err(bad_argument("sharded", what, "use two of one shape"));
            }
            let (mut grid, mut first) = (Vec::with_capacity(self.grid.len()), 0);
            for row in &self.grid {
                let count = sizes_of(&row[0])?[0];
                let beside = other.sliced(first..first + count)?;
                first += count;
                let (mut made, mut column) = (Vec::with_capacity(row.len()), 0);
                for block in row {
                    let wide = sizes_of(block)?.get(1).copied().unwrap_or(0);
                    let all_columns = self.grid[0].len() == 1;
                    let beside = match (all_columns, beside.single()) {
                        (true, Some(beside)) => beside.clone(),
                        _ => {
                            let columns = Part::from(column as i64..(column + wide) as i64);
                            beside.to_tensor()?.slice(&[Part::ALL, columns])?
                        }
                    };
                    column += wide;
                    let new = f(block, &beside)?;
                    same_shape(block, &new)?;
                    made.push(new);
                }
                grid.push(made);
            }
            Sharded::checked(grid)
        };
        all().map_err(|e| e.at(source))
    }

    /// Added up over axes: block by block in the dtype's own way, and blocks as f64 or i64.
    ///
    /// # Errors
    /// Where it has no such axes, or a block cannot be read.
    #[track_caller]
    pub fn sum(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let source = Source::here();
        self.reduce(axes.into(), BlockReduction::Sum).map_err(|e| e.at(source))
    }

    /// The largest over axes; NaN wins.
    ///
    /// # Errors
    /// As [`sum`](Sharded::sum) has them.
    #[track_caller]
    pub fn max(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let source = Source::here();
        self.reduce(axes.into(), BlockReduction::Max).map_err(|e| e.at(source))
    }

    /// The least over axes; NaN wins.
    ///
    /// # Errors
    /// As [`sum`](Sharded::sum) has them.
    #[track_caller]
    pub fn min(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let source = Source::here();
        self.reduce(axes.into(), BlockReduction::Min).map_err(|e| e.at(source))
    }

    /// The mean over axes of a float tensor.
    ///
    /// # Errors
    /// As [`sum`](Sharded::sum) has them, and for whole numbers.
    #[track_caller]
    pub fn mean(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let (source, axes) = (Source::here(), axes.into());
        let mean = || {
            if !self.dtype.is_float() {
                let what = format!("the mean of {}", self.ty());
                return Err(bad_argument("mean", what, "cast it to a float"));
            }
            let over = self.axes(&axes)?;
            let count: usize = over.iter().map(|axis| self.sizes[*axis]).product();
            let wide = self
                .map(|block| block.cast(DType::F64))?
                .reduce(axes.clone(), BlockReduction::Sum)?;
            wide.div(count as f64)?.cast(self.dtype)
        };
        mean().map_err(|e| e.at(source))
    }

    /// Its product with a matrix in memory, `[.., k] x [k, columns]`: a block of rows of the result for each of its own. What is
    /// made is in memory; [`map_chunks_to`](Sharded::map_chunks_to) writes it to a file instead.
    ///
    /// # Errors
    /// Where sizes do not fit.
    #[track_caller]
    pub fn matmul(&self, right: &Tensor) -> Result<Sharded> {
        let source = Source::here();
        let all = || {
            let mut rows = Vec::with_capacity(self.grid.len());
            for row in &self.grid {
                if let [only] = row.as_slice() {
                    rows.push(vec![only.matmul(right)?]);
                    continue;
                }
                let (mut sum, mut first): (Option<Tensor>, i64) = (None, 0);
                for block in row {
                    let deep = sizes_of(block)?[1] as i64;
                    let part = block.matmul(&right.slice(&[Part::from(first..first + deep)])?)?;
                    first += deep;
                    sum = Some(match sum {
                        Some(sum) => (sum + part)?,
                        None => part,
                    });
                }
                rows.push(sum.into_iter().collect());
            }
            Sharded::checked(rows)
        };
        all().map_err(|e| e.at(source))
    }

    /// Rows by their indices, in memory; of files just these are read.
    ///
    /// # Errors
    /// Where a number is no row, or the numbers are not i64.
    #[track_caller]
    pub fn gather(&self, rows: &Tensor) -> Result<Tensor> {
        let source = Source::here();
        let all = || {
            let mut made = Vec::new();
            for row in rows.to_vec::<i64>()? {
                let at = usize::try_from(row).ok().filter(|at| *at < self.sizes[0]);
                let at = at.ok_or_else(|| self.no_rows(&row.to_string()))?;
                made.push(self.sliced(at..at + 1)?.to_tensor()?);
            }
            match made.is_empty() {
                true => self.sliced(0..0)?.to_tensor(),
                false => concat(&made.iter().collect::<Vec<_>>(), 0),
            }
        };
        all().map_err(|e| e.at(source))
    }

    /// All of it as one tensor. One block stays what it is; several are joined in memory.
    ///
    /// # Errors
    /// Where there is no memory for it.
    #[track_caller]
    pub fn to_tensor(&self) -> Result<Tensor> {
        let source = Source::here();
        let all = || {
            if let Some(single) = self.single() {
                return Ok(single.clone());
            }
            let beside = |row: &Vec<Tensor>| match row.as_slice() {
                [only] => Ok(only.clone()),
                several => concat(&several.iter().collect::<Vec<_>>(), 1),
            };
            let rows = self.grid.iter().map(beside).collect::<Result<Vec<_>>>()?;
            match rows.as_slice() {
                [only] => Ok(only.clone()),
                several => concat(&several.iter().collect::<Vec<_>>(), 0),
            }
        };
        all().map_err(|e| e.at(source))
    }

    /// The only block.
    pub(super) fn single(&self) -> Option<&Tensor> {
        match self.grid.as_slice() {
            [row] if row.len() == 1 => row.first(),
            _ => None,
        }
    }

    /// Axes counted from the front.
    fn axes(&self, axes: &Axes) -> Result<Vec<usize>> {
        let Axes(Some(axes)) = axes else { return Ok((0..self.sizes.len()).collect()) };
        axes.iter().map(|axis| self.ty().shape.axis("sharded", *axis)).collect()
    }

    fn reduce(&self, axes: Axes, reduction: BlockReduction) -> Result<Tensor> {
        let over = self.axes(&axes)?;
        let signed: Vec<i64> = over.iter().map(|axis| *axis as i64).collect();
        // Sums of blocks are held wide, and rounded once at the end.
        let wide = match reduction {
            BlockReduction::Sum if self.dtype.is_float() => DType::F64,
            _ => self.dtype,
        };
        let part = |block: &Tensor| {
            let made = match reduction {
                BlockReduction::Sum => block.sum_keep(&signed[..]),
                BlockReduction::Max => block.max_keep(&signed[..]),
                BlockReduction::Min => block.min_keep(&signed[..]),
            }?;
            if wide == self.dtype { Ok(made) } else { made.cast(wide) }
        };
        let rows = self.grid.iter().map(|row| {
            let parts = row.iter().map(part).collect::<Result<Vec<_>>>()?;
            joined(parts, 1, over.contains(&1), reduction)
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let whole = joined(rows, 0, over.contains(&0), reduction)?;
        let kept = (0..self.sizes.len()).filter(|axis| !over.contains(axis));
        let kept: Vec<usize> = kept.map(|axis| self.sizes[axis]).collect();
        whole.reshape(&kept[..])?.cast(self.dtype)
    }
}

/// Partial results along an axis: combined where that is reduced, concatenated where it is not.
fn joined(
    parts: Vec<Tensor>,
    axis: i64,
    reduced: bool,
    reduction: BlockReduction,
) -> Result<Tensor> {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        return Err(bad_argument("sharded", "no blocks", "give at least one"));
    };
    if parts.len() == 0 {
        return Ok(first);
    }
    if !reduced {
        let all: Vec<Tensor> = std::iter::once(first).chain(parts).collect();
        return concat(&all.iter().collect::<Vec<_>>(), axis);
    }
    parts.try_fold(first, |sum, part| match reduction {
        BlockReduction::Sum => sum + part,
        BlockReduction::Max => sum.maximum(&part),
        BlockReduction::Min => sum.minimum(&part),
    })
}

fn same_shape(block: &Tensor, made: &Tensor) -> Result<()> {
    match block.shape() == made.shape() {
        true => Ok(()),
        false => {
            let what = format!("of {} it made {}", block.ty(), made.ty());
            Err(bad_argument("sharded", what, "use map_chunks for what changes shapes"))
        }
    }
}
