//! One spill file: as long as a plan says from the start, gone when it is dropped.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use tonnage_core::{Bytes, Error, ErrorKind, Result};

use super::checksum::sum;
use super::folder;
use crate::system::reserve;

/// A file that values wait in, each at its place, with a checksum that stays in memory: whatever is done to the
/// file shows.
///
/// ```
/// use tonnage_core::Bytes;
/// use tonnage_runtime::spill::SpillFile;
/// let mut file = SpillFile::create(Bytes::mib(1))?;
/// file.write(4096, b"waits")?;
/// let mut back = [0; 5];
/// file.read(4096, &mut back)?;
/// assert_eq!(&back, b"waits");
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    path: PathBuf,
    /// By where a value starts.
    sums: HashMap<u64, u64>,
}

impl SpillFile {
    /// A new file of that length in the folder for spill files. A disk that is too full shows here.
    ///
    /// # Errors
    /// Where the folder cannot be written, or the disk has no room.
    pub fn create(len: Bytes) -> Result<SpillFile> {
        let (file, path) = folder::create()?;
        let made = SpillFile { file, path, sums: HashMap::new() };
        reserve(&made.file, len.get()).map_err(|e| made.no_room(len, &e))?;
        Ok(made)
    }

    /// A new file that grows as it is written, and goes with the process however that ends: on unix it has no name
    /// from here on, elsewhere the next process that spills clears it.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub(crate) fn nameless() -> Result<SpillFile> {
        let (file, path) = folder::nameless()?;
        Ok(SpillFile { file, path, sums: HashMap::new() })
    }

    /// The value at a place will not be asked for again.
    pub(crate) fn forget(&mut self, at: u64) {
        self.sums.remove(&at);
    }

    /// Nothing lies beyond that any more.
    pub(crate) fn cut(&mut self, len: u64) {
        // Where that fails the file is longer than it has to be, and nothing else.
        let _ = self.file.set_len(len);
    }

    /// Puts a value at a place.
    ///
    /// # Errors
    /// Where the disk is full or fails.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|e| self.no_room(Bytes::of(bytes.len()), &e))?;
        self.sums.insert(at, sum(bytes));
        Ok(())
    }

    /// Takes the value back that was put at a place.
    ///
    /// # Errors
    /// Where the file gives fewer bytes, or others, than were written.
    pub fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<()> {
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(bytes));
        match read {
            Ok(()) if self.sums.get(&at) == Some(&sum(bytes)) => Ok(()),
            Ok(()) => Err(self.wrong("the file was changed by somebody else".into())),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.wrong("the file was cut short by somebody else".into()))
            }
            Err(e) => Err(self.wrong(format!("the file cannot be read back ({e})"))),
        }
    }

    fn no_room(&self, bytes: Bytes, error: &io::Error) -> Error {
        let what = format!("{bytes} cannot be written to the file ({error})");
        let help = "make room on the disk, choose another folder with memory::set_spill_folder or \
                    TONNAGE_SPILL_DIR, raise the budget or the limit, or forbid spilling with no_spill";
        let path = self.path.display().to_string();
        ErrorKind::Spill { what, path, help: help.into() }.into()
    }

    fn wrong(&self, what: String) -> Error {
        let help =
            "nothing was changed by it: call again, with a folder that nobody else writes to";
        let path = self.path.display().to_string();
        ErrorKind::Spill { what, path, help: help.into() }.into()
    }
}

impl Drop for SpillFile {
    // A file that stays, because the system will not remove it, is cleared by the next process that spills here.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [u64; 2] = [0, 4096];

    fn filled() -> SpillFile {
        let mut file = SpillFile::create(Bytes::new(8192)).unwrap();
        for (at, byte) in PLACES.into_iter().zip(1..) {
            file.write(at, &[byte; 4096]).unwrap();
        }
        file
    }

    #[test]
    fn what_is_written_comes_back_and_the_file_goes() {
        let mut file = filled();
        let path = file.path.clone();
        assert_eq!(fs::metadata(&path).unwrap().len(), 8192);
        for (at, byte) in PLACES.into_iter().zip(1..) {
            let mut back = vec![0; 4096];
            file.read(at, &mut back).unwrap();
            assert!(back.iter().all(|b| *b == byte));
        }
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_without_a_name_is_in_no_folder_and_gets_shorter() {
        let mut file = SpillFile::nameless().unwrap();
        assert_eq!(file.path.exists(), !cfg!(unix));
        file.write(100, b"first").unwrap();
        file.write(200, b"second").unwrap();
        file.forget(200);
        file.cut(105);
        assert_eq!(file.file.metadata().unwrap().len(), 105);
        let mut back = [0; 5];
        file.read(100, &mut back).unwrap();
        assert_eq!(&back, b"first");
        assert!(file.read(200, &mut back).unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn a_file_that_is_cut_or_changed_is_an_error_that_names_it() {
        let mut file = filled();
        let name = file.path.display().to_string();
        let mut other = fs::OpenOptions::new().write(true).open(&file.path).unwrap();
        other.seek(SeekFrom::Start(5000)).unwrap();
        other.write_all(&[9]).unwrap();
        let mut back = vec![0; 4096];
        file.read(0, &mut back).unwrap();
        let error = file.read(4096, &mut back).unwrap_err().to_string();
        assert!(error.contains("was changed") && error.contains(&name), "{error}");
        other.set_len(6000).unwrap();
        let error = file.read(4096, &mut back).unwrap_err().to_string();
        assert!(error.contains("was cut short") && error.contains(&name), "{error}");
    }
}
