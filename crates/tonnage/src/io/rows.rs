//! An npy file that is written some rows at a time: results that are larger than memory.

use std::io::SeekFrom;
use std::path::Path;

use tonnage_core::shape::Sizes;
use tonnage_core::{DType, Result, Source, TensorType};

use super::{Order, WriteSeek, bad_file, failed, npy, put_elements, write_atomically};
use crate::tensor::Tensor;

/// A file that is being written; see [`save_npy_rows`].
pub struct NpyRows<'f> {
    path: &'f Path,
    file: &'f mut dyn WriteSeek,
    source: Source,
    /// Of the rows so far: how many, and the type of one.
    rows: usize,
    row: Option<(DType, Sizes)>,
}

/// Saves rows as they are made, atomically: `write` is lent the file and puts them there, in memory there is no more than what it has in
/// hand. The file appears when `write` is done; where it fails, the old one is still there.
///
/// ```
/// use tonnage::io::{read_npy, save_npy_rows};
/// let path = std::env::temp_dir().join(format!("rows-made-{}.npy", std::process::id()));
/// save_npy_rows(&path, |file| {
///     (0..3).try_for_each(|i| file.put(&tonnage::constant(i as f32, [2, 4])?))
/// })?;
/// assert_eq!(read_npy(&path)?.ty().to_string(), "f32[6, 4]");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where `write` fails, nothing was put, or the file cannot be written.
#[track_caller]
pub fn save_npy_rows(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut NpyRows<'_>) -> Result<()>,
) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    let made = write_atomically(path, |file| {
        let mut rows = NpyRows { path, file, source, rows: 0, row: None };
        write(&mut rows)?;
        rows.finish()
    });
    made.map_err(|e| e.at(source))
}

impl NpyRows<'_> {
    /// Writes some rows behind the others. A recipe is computed, or read from its file, a piece at a time.
    ///
    /// # Errors
    /// Where they are of another type than those before, or cannot be written.
    pub fn put(&mut self, rows: &Tensor) -> Result<()> {
        let array = rows.array("save_npy_rows")?;
        let Some((count, row)) = array.sizes().split_first() else {
            return Err(bad_file(self.path, "is given a scalar", "put rows: reshape it to [1]"));
        };
        match &self.row {
            None => {
                // With room for any number of rows; it is written again when that is known.
                self.row = Some((array.dtype(), row.into()));
                self.header()?;
            }
            Some((dtype, known)) if *dtype != array.dtype() || known[..] != *row => {
                let known = TensorType::new(*dtype, &known[..]);
                let new = TensorType::new(array.dtype(), row);
                let what = format!("has rows of {known}, and is given rows of {new}");
                return Err(bad_file(self.path, what, "put rows of one type"));
            }
            Some(_) => {}
        }
        put_elements(self.file, array, Order::default(), self.path, self.source)?;
        self.rows += count;
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn header(&mut self) -> Result<()> {
        let Some((dtype, row)) = &self.row else {
            return Err(bad_file(self.path, "is given no rows", "put at least an empty block"));
        };
        let sizes: Sizes = [self.rows].into_iter().chain(row.iter().copied()).collect();
        let header = npy::written(*dtype, &sizes, false);
        self.file.write_all(&header).map_err(|e| failed(self.path, "written", &e))
    }

    fn finish(mut self) -> Result<()> {
        self.file.seek(SeekFrom::Start(0)).map_err(|e| failed(self.path, "written", &e))?;
        self.header()
    }
}
