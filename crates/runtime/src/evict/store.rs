//! The file that evicted tensors lie in: one a process, made when it is first needed and gone with the process,
//! however that ends.
//!
//! It has no name from the moment on that it is open (where the system allows that), so nobody else can open, cut or
//! change it, two processes never meet, and nothing is left behind after a kill. What is read back is checked
//! all the same: disks fail.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_core::error::ErrorKind;
use tonnage_core::{Bytes, Error, Result};

use crate::spill::{self, sum};

/// The file, and which ranges of it are taken.
#[derive(Debug)]
pub(crate) struct Store {
    /// Where it was made, for messages.
    folder: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    /// Where it ends.
    end: u64,
    /// Ranges that are free, in order, no two side by side.
    free: Vec<(u64, u64)>,
}

/// Bytes in the file. Dropping it frees them.
#[derive(Debug)]
pub(crate) struct Slot {
    store: Arc<Store>,
    at: u64,
    len: u64,
    sum: u64,
}

impl Store {
    /// A new file in the folder for spill files.
    pub(crate) fn open() -> Result<Store> {
        Store::open_in(&spill::folder())
    }

    pub(crate) fn open_in(folder: &Path) -> Result<Store> {
        let refused = |why: std::io::Error| failed(folder, "put into a file", Bytes::ZERO, &why);
        let mut last = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        // A name that is taken is another process's, or of one that was killed in between.
        for n in 0..1000 {
            let path = folder.join(format!("tonnage-{}-{n}.evicted", std::process::id()));
            match nameless(&path) {
                Ok(file) => {
                    let inner = Mutex::new(Inner { file, end: 0, free: Vec::new() });
                    return Ok(Store { folder: folder.into(), inner });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(refused(error)),
            }
        }
        Err(refused(last))
    }

    /// Writes bytes to a place of their own.
    pub(crate) fn put(self: &Arc<Store>, bytes: &[u8]) -> Result<Slot> {
        let len = bytes.len() as u64;
        let mut inner = self.inner();
        let at = inner.take(len);
        match inner.write(at, bytes) {
            Ok(()) => Ok(Slot { store: self.clone(), at, len, sum: sum(bytes) }),
            Err(error) => {
                inner.give(at, len);
                Err(failed(&self.folder, "written", Bytes::new(len), &error))
            }
        }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// How many bytes.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Reads them back.
    ///
    /// # Errors
    /// Where the file does not give what was written.
    pub(crate) fn get(&self, into: &mut [u8]) -> Result<()> {
        let read = self.store.inner().read(self.at, into);
        let bytes = Bytes::new(self.len);
        read.map_err(|error| failed(&self.store.folder, "read back", bytes, &error))?;
        if sum(into) != self.sum {
            let error = std::io::Error::other("the bytes are not those that were written");
            return Err(failed(&self.store.folder, "read back", bytes, &error));
        }
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.store.inner().give(self.at, self.len);
    }
}

impl Inner {
    /// A range: the first that is free and large enough, or the end of the file.
    fn take(&mut self, len: u64) -> u64 {
        let Some(i) = self.free.iter().position(|(_, free)| *free >= len) else {
            let at = self.end;
            self.end += len;
            return at;
        };
        let (at, free) = self.free[i];
        match free == len {
            true => drop(self.free.remove(i)),
            false => self.free[i] = (at + len, free - len),
        }
        at
    }

    /// Gives a range back. What is free at the end leaves the file, and so the disk.
    fn give(&mut self, at: u64, len: u64) {
        let i = self.free.partition_point(|(start, _)| *start < at);
        self.free.insert(i, (at, len));
        for i in [i + 1, i] {
            if i > 0 && i < self.free.len() {
                let (start, before) = self.free[i - 1];
                if start + before == self.free[i].0 {
                    let (_, more) = self.free.remove(i);
                    self.free[i - 1] = (start, before + more);
                }
            }
        }
        if let Some((start, len)) = self.free.last().copied()
            && start + len == self.end
        {
            self.free.pop();
            self.end = start;
            // Where that fails the file is longer than it has to be, and nothing else.
            let _ = self.file.set_len(start);
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(into)
    }
}

/// Opens a new file that goes with its last handle.
#[cfg(unix)]
fn nameless(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Opens a new file that goes with its last handle.
#[cfg(windows)]
fn nameless(path: &Path) -> std::io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).share_mode(0);
    options.custom_flags(DELETE_ON_CLOSE).open(path)
}

fn failed(folder: &Path, what: &'static str, bytes: Bytes, why: &std::io::Error) -> Error {
    ErrorKind::Spill {
        what: format!("{bytes} of tensors that leave memory could not be {what}: {why}"),
        path: folder.display().to_string(),
        help: "make room on the disk, choose another folder with memory::set_spill_folder or \
               TONNAGE_SPILL_DIR, or raise the limit"
            .into(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Arc<Store> {
        Arc::new(Store::open().unwrap())
    }

    /// How many ranges are free, and where the file ends.
    fn ends(store: &Store) -> (usize, u64) {
        let inner = store.inner();
        (inner.free.len(), inner.end)
    }

    #[test]
    fn what_is_put_is_got_back_and_places_are_used_again() {
        let store = store();
        let bytes: Vec<Vec<u8>> = (1..6u8).map(|n| vec![n; 1000 * usize::from(n)]).collect();
        let mut slots: Vec<Option<Slot>> =
            bytes.iter().map(|b| Some(store.put(b).unwrap())).collect();
        assert_eq!(store.inner().end, 15_000);
        slots[1] = None;
        slots[2] = None;
        assert_eq!(store.inner().free, [(1000, 5000)]);
        let again = store.put(&[9; 4500]).unwrap();
        assert_eq!((again.at, ends(&store)), (1000, (1, 15_000)));
        for (slot, bytes) in slots.iter().zip(&bytes) {
            if let Some(slot) = slot {
                let mut got = vec![0; slot.len()];
                slot.get(&mut got).unwrap();
                assert_eq!(got, *bytes);
            }
        }
        drop(slots);
        assert_eq!(ends(&store), (1, 5500));
        drop(again);
        assert_eq!(ends(&store), (0, 0));
        assert_eq!(store.inner().file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn what_was_changed_or_cut_is_an_error_and_stays_one() {
        let store = store();
        let slot = store.put(&[7; 4096]).unwrap();
        store.inner().write(100, &[8]).unwrap();
        let mut got = vec![0; 4096];
        let error = slot.get(&mut got).unwrap_err().to_string();
        assert!(error.contains("not those that were written"), "{error}");
        store.inner().file.set_len(50).unwrap();
        assert!(slot.get(&mut got).unwrap_err().to_string().contains("read back"));
    }

    #[test]
    fn a_folder_that_takes_no_file_is_named_and_one_that_does_has_no_file_in_it() {
        let folder = std::env::temp_dir().join(format!("tonnage-store-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let store = Arc::new(Store::open_in(&folder).unwrap());
        let slot = store.put(&[1; 100]).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        drop((slot, store));
        std::fs::remove_dir(&folder).unwrap();
        let error = Store::open_in(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
