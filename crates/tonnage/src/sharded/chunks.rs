//! A tensor in pieces, read some rows at a time.

use std::ops::Range;
use std::path::Path;

use tonnage_core::{Bytes, Kind, Mark, Result, Source};
use tonnage_runtime::host_ledger;

use super::Sharded;
use crate::io::save_npy_rows;
use crate::ops::concat;
use crate::tensor::Tensor;

/// What chunks take where no limit is set: more is not quicker.
const MOST: Bytes = Bytes::mib(16);

/// How many rows a chunk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChunkRows {
    /// An eighth of what the device's limit leaves, so that there is room for what is made of it, and at most 16 MiB.
    #[default]
    Fitting,
    /// This many.
    Count(usize),
}

/// Some rows, in memory.
#[derive(Debug)]
pub struct Chunk {
    /// Which.
    pub rows: Range<usize>,
    /// Of how many: a pass is done by `rows.end / of`.
    pub of: usize,
    /// Their elements.
    pub tensor: Tensor,
}

impl Sharded {
    /// Shows all rows in order, some at a time; each chunk is in memory while it is looked at.
    ///
    /// ```
    /// use tonnage::{ChunkRows, Sharded, range};
    /// let x = Sharded::rows([range(0i64, 5, 1)?, range(5i64, 8, 1)?])?;
    /// let mut sums = vec![];
    /// x.for_each_chunk(ChunkRows::Count(3), |chunk| {
    ///     sums.push(chunk.tensor.sum_all()?.scalar::<i64>()?);
    ///     Ok(())
    /// })?;
    /// assert_eq!(sums, [3, 12, 13]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where a block cannot be read, there is no room for a chunk, or `f` fails.
    #[track_caller]
    pub fn for_each_chunk(
        &self,
        rows: ChunkRows,
        f: impl FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        let source = Source::here();
        self.chunks(rows, source, f).map_err(|e| e.at(source))
    }

    /// What is made of each chunk, one below the other, in memory.
    ///
    /// # Errors
    /// As [`for_each_chunk`](Sharded::for_each_chunk) has them.
    #[track_caller]
    pub fn map_chunks(
        &self,
        rows: ChunkRows,
        mut f: impl FnMut(Chunk) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let source = Source::here();
        let mut made = Vec::new();
        let all = self.chunks(rows, source, |chunk| {
            made.push(f(chunk)?);
            Ok(())
        });
        let joined = all.and_then(|()| match made.as_slice() {
            [only] => Ok(only.clone()),
            several => concat(&several.iter().collect::<Vec<_>>(), 0),
        });
        joined.map_err(|e| e.at(source))
    }

    /// What is made of each chunk, one below the other, in an npy file that appears when it is whole: results that are larger than memory.
    ///
    /// # Errors
    /// As [`for_each_chunk`](Sharded::for_each_chunk) has them, and where the file cannot be written; the old one is then still there.
    #[track_caller]
    pub fn map_chunks_to(
        &self,
        path: impl AsRef<Path>,
        rows: ChunkRows,
        mut f: impl FnMut(Chunk) -> Result<Tensor>,
    ) -> Result<()> {
        let source = Source::here();
        let save = |file: &mut crate::io::NpyRows<'_>| {
            self.chunks(rows, source, |chunk| file.put(&f(chunk)?))
        };
        save_npy_rows(path, save).map_err(|e| e.at(source))
    }

    /// Saves it as an npy file, atomically, a block at a time, and those that are recipes or in files a piece at a time.
    ///
    /// # Errors
    /// Where the file cannot be written.
    #[track_caller]
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let source = Source::here();
        if self.grid.iter().any(|row| row.len() != 1) {
            return self.map_chunks_to(path, ChunkRows::Fitting, |chunk| Ok(chunk.tensor));
        }
        let saved = save_npy_rows(path, |file| {
            self.grid.iter().flatten().try_for_each(|block| file.put(block))
        });
        saved.map_err(|e| e.at(source))
    }

    fn chunks(
        &self,
        rows: ChunkRows,
        source: Source,
        mut f: impl FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        let of = self.sizes[0];
        let at_once = self.at_once(rows)?;
        let mark = Mark { source, kind: Kind::Input };
        let mut first = 0usize;
        loop {
            let rows = first..of.min(first.saturating_add(at_once));
            let whole = self.sliced(rows.clone())?.to_tensor()?;
            let tensor = match whole.is_recipe() {
                true => Tensor::from_array(whole.array("sharded")?.copied(mark, "chunk")?),
                false => whole,
            };
            first = rows.end;
            f(Chunk { rows, of, tensor })?;
            if first >= of {
                return Ok(());
            }
        }
    }

    fn at_once(&self, rows: ChunkRows) -> Result<usize> {
        if let ChunkRows::Count(rows) = rows {
            return Ok(rows.max(1));
        }
        let row = tonnage_core::TensorType::new(self.dtype, &self.sizes[1..]).bytes("sharded")?;
        let room = match host_ledger().limited() {
            Some((limit, in_use)) => Bytes::new(limit.saturating_sub(in_use).get() / 8).min(MOST),
            None => MOST,
        };
        Ok((room.get() / row.get().max(1)).max(1) as usize)
    }
}
