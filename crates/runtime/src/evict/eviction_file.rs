//! The file that evicted tensors lie in: one a process, made when it is first needed and gone with the process,
//! however that ends. [`Ranges`] knows which parts of it are taken; [`SpillFile`] writes, reads and checks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_core::Result;

use crate::spill::{Ranges, SpillFile};

/// The file, and which ranges of it are taken.
#[derive(Debug)]
pub(crate) struct EvictionFile(Mutex<FileAndRanges>);

#[derive(Debug)]
struct FileAndRanges {
    file: SpillFile,
    ranges: Ranges,
}

/// Bytes in the file. Dropping it frees them.
#[derive(Debug)]
pub(crate) struct EvictedRange {
    store: Arc<EvictionFile>,
    at: u64,
    len: u64,
}

impl EvictionFile {
    /// A new file in the folder for spill files.
    pub(crate) fn open() -> Result<EvictionFile> {
        let file = SpillFile::nameless()?;
        Ok(EvictionFile(Mutex::new(FileAndRanges { file, ranges: Ranges::default() })))
    }

    /// Writes bytes to a place of their own.
    pub(crate) fn put(self: &Arc<EvictionFile>, bytes: &[u8]) -> Result<EvictedRange> {
        let len = bytes.len() as u64;
        let mut inner = self.inner();
        let at = inner.ranges.take(len);
        // A place that could not be written goes the way of all others.
        let evicted = EvictedRange { store: self.clone(), at, len };
        let written = inner.file.write(at, bytes);
        drop(inner);
        written.map(|()| evicted)
    }

    fn inner(&self) -> MutexGuard<'_, FileAndRanges> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EvictedRange {
    /// How many bytes.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Reads them back.
    ///
    /// # Errors
    /// Where the file does not give what was written.
    pub(crate) fn get(&self, into: &mut [u8]) -> Result<()> {
        self.store.inner().file.read(self.at, into)
    }
}

impl Drop for EvictedRange {
    fn drop(&mut self) {
        let mut inner = self.store.inner();
        inner.file.forget(self.at);
        // What is free at the end leaves the file, and so the disk.
        if let Some(end) = inner.ranges.give(self.at, self.len) {
            inner.file.cut(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Arc<EvictionFile> {
        Arc::new(EvictionFile::open().unwrap())
    }

    #[test]
    fn what_is_put_is_got_back_and_places_are_used_again() {
        let store = store();
        let bytes: Vec<Vec<u8>> = (1..6u8).map(|n| vec![n; 1000 * usize::from(n)]).collect();
        let mut evicted_ranges: Vec<Option<EvictedRange>> =
            bytes.iter().map(|b| Some(store.put(b).unwrap())).collect();
        evicted_ranges[1] = None;
        evicted_ranges[2] = None;
        let again = store.put(&[9; 4500]).unwrap();
        assert_eq!((again.at, store.inner().ranges.end()), (1000, 15_000));
        for (evicted, bytes) in evicted_ranges.iter().zip(&bytes) {
            if let Some(evicted) = evicted {
                let mut got = vec![0; evicted.len()];
                evicted.get(&mut got).unwrap();
                assert_eq!(got, *bytes);
            }
        }
        drop(evicted_ranges);
        assert_eq!(store.inner().ranges.end(), 5500);
        drop(again);
        assert_eq!(store.inner().ranges.end(), 0);
    }
}
