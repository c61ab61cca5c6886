//! Values that live in a file instead of in memory, for as long as somebody holds them: those of variables that live there.
//!
//! All of them lie in one file a folder, which has no name where the system allows that, and is gone with the
//! process. A value is written once, a piece at a time, and never again: holders of an older one still read that.
//! Its place is used again when it has no holders.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tonnage_core::recipe::Elements;
use tonnage_core::{Bytes, Error, ErrorKind, Result};

use super::folder::{folder, nameless};
use super::{FilePass, Ranges};
use crate::context::Context;
use crate::system::{read_ahead, read_at, reserve, write_at};

/// The file of a folder.
#[derive(Debug)]
struct FolderFile {
    folder: PathBuf,
    file: File,
    path: PathBuf,
    ranges: Mutex<Ranges>,
}

/// The one that is in use in a context; it goes when nothing is stored in it any more.
#[derive(Default)]
struct CurrentFile(Mutex<Weak<FolderFile>>);

impl FolderFile {
    /// That of the folder for spill files, as it is now.
    fn open() -> Result<Arc<FolderFile>> {
        let current = Context::current().local::<CurrentFile>();
        let mut known = current.0.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folder();
        if let Some(folder_file) =
            known.upgrade().filter(|folder_file| folder_file.folder == folder)
        {
            return Ok(folder_file);
        }
        let (file, path) = nameless()?;
        let made = Arc::new(FolderFile { folder, file, path, ranges: Mutex::default() });
        *known = Arc::downgrade(&made);
        Ok(made)
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FolderFile {
    fn drop(&mut self) {
        if !cfg!(unix) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Elements that are stored in a file. Dropping it frees their place.
///
/// ```
/// use tonnage_core::recipe::Elements;
/// use tonnage_runtime::spill::FileValue;
/// let file_value = FileValue::reserve(1024, 4)?; //   so many elements of 4 bytes
/// file_value.write(10, &[1; 8])?; //             the two from the tenth on
/// let mut back = [0; 4];
/// file_value.read(11, &mut back);
/// file_value.check()?;
/// assert_eq!(back, [1; 4]);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug)]
pub struct FileValue {
    folder_file: Arc<FolderFile>,
    at: u64,
    len: u64,
    /// Of an element.
    size: u64,
    pass: FilePass,
    /// What the system said when a read first failed.
    failed: OnceLock<Error>,
}

impl FileValue {
    /// A place for `count` elements of `size` bytes. A disk that is too full shows here.
    ///
    /// # Errors
    /// Where the folder cannot be written, or the disk has no room.
    pub fn reserve(count: usize, size: usize) -> Result<FileValue> {
        let folder_file = FolderFile::open()?;
        // Whole pages: two that lie side by side share none.
        let len = Bytes::of(count).checked_mul(size as u64).map_or(u64::MAX, Bytes::get);
        let len = len.checked_next_multiple_of(4096).ok_or_else(|| {
            no_room(&folder_file.path, len, &io::Error::from(io::ErrorKind::FileTooLarge))
        })?;
        let (at, grows) = {
            let mut ranges = folder_file.ranges();
            let before = ranges.end();
            (ranges.take(len), ranges.end().checked_sub(before).filter(|more| *more > 0))
        };
        let (pass, failed) = (FilePass::default(), OnceLock::new());
        let made = FileValue { folder_file, at, len, size: size as u64, pass, failed };
        if grows.is_some() {
            reserve(&made.folder_file.file, at + len)
                .map_err(|e| no_room(&made.folder_file.path, len, &e))?;
        }
        Ok(made)
    }

    /// Puts elements at a place among them.
    ///
    /// # Errors
    /// Where the disk is full or fails.
    pub fn write(&self, from: usize, bytes: &[u8]) -> Result<()> {
        let at = self.at + from as u64 * self.size;
        let len = bytes.len() as u64;
        write_at(&self.folder_file.file, at, bytes)
            .map_err(|e| no_room(&self.folder_file.path, len, &e))
    }
}

impl Elements for FileValue {
    fn read(&self, from: u64, out: &mut [u8]) {
        let at = self.at + from * self.size;
        let fill = |at: u64, out: &mut [u8]| read_at(&self.folder_file.file, at, out);
        if let Err(error) = self.pass.read(at, self.at + self.len, out, fill) {
            out.fill(0);
            let _ = self.failed.set(unreadable(&self.folder_file.path, &error));
        }
    }

    fn ahead(&self, from: u64, count: usize) {
        let from = from * self.size;
        let len = (count as u64).saturating_mul(self.size).min(self.len.saturating_sub(from));
        read_ahead(&self.folder_file.file, self.at + from, len);
    }

    fn check(&self) -> Result<()> {
        self.pass.ends();
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

impl Drop for FileValue {
    fn drop(&mut self) {
        // The disk has room for the next value: nothing leaves the file before all do. Nobody may take a place meanwhile.
        let mut ranges = self.folder_file.ranges();
        if ranges.give(self.at, self.len) == Some(0) {
            let _ = self.folder_file.file.set_len(0);
        }
    }
}

fn no_room(path: &Path, len: u64, error: &io::Error) -> Error {
    let what = format!("{} cannot be written to the file ({error})", Bytes::new(len));
    let help = "make room on the disk, or choose another folder with memory::set_spill_folder or TONNAGE_SPILL_DIR";
    ErrorKind::Spill { what, path: path.display().to_string(), help: help.into() }.into()
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let what = format!("the value of a variable cannot be read back ({error})");
    let help =
        "read the variable from where it was saved, with a folder that nobody else writes to";
    ErrorKind::Spill { what, path: path.display().to_string(), help: help.into() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(byte: u8, count: usize) -> FileValue {
        let file_value = FileValue::reserve(count, 4).unwrap();
        file_value.write(0, &vec![byte; count * 4]).unwrap();
        file_value
    }

    fn back(file_value: &FileValue, from: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count * 4];
        file_value.read(from, &mut bytes);
        file_value.check().unwrap();
        bytes
    }

    #[test]
    fn values_lie_apart_and_stay_where_others_go() {
        let one = filled(1, 10_000);
        let two = filled(2, 3);
        assert_eq!(back(&one, 9_990, 10), [1; 40]);
        assert_eq!(back(&two, 0, 3), [2; 12]);
        drop(one);
        let three = filled(3, 9_000);
        assert_eq!(back(&three, 100, 2), [3; 8]);
        assert_eq!(back(&two, 1, 2), [2; 8]);
    }

    #[test]
    fn nothing_and_too_much_are_no_accident() {
        let none = FileValue::reserve(0, 4).unwrap();
        none.write(0, &[]).unwrap();
        assert!(back(&none, 0, 0).is_empty());
        let error = FileValue::reserve(usize::MAX, 8).unwrap_err().to_string();
        assert!(error.contains("cannot be written"), "{error}");
    }
}
