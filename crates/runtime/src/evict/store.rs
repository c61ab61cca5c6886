//! The file that evicted tensors lie in: one a process, made when it is first needed and gone with the process,
//! however that ends. Which ranges of it are taken is known here; [`SpillFile`] writes, reads and checks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_core::Result;

use crate::spill::SpillFile;

/// The file, and which ranges of it are taken.
#[derive(Debug)]
pub(crate) struct Store(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    file: SpillFile,
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
}

impl Store {
    /// A new file in the folder for spill files.
    pub(crate) fn open() -> Result<Store> {
        let file = SpillFile::nameless()?;
        Ok(Store(Mutex::new(Inner { file, end: 0, free: Vec::new() })))
    }

    /// Writes bytes to a place of their own.
    pub(crate) fn put(self: &Arc<Store>, bytes: &[u8]) -> Result<Slot> {
        let len = bytes.len() as u64;
        let mut inner = self.inner();
        let at = inner.take(len);
        if let Err(error) = inner.file.write(at, bytes) {
            inner.give(at, len);
            return Err(error);
        }
        Ok(Slot { store: self.clone(), at, len })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.store.inner().file.read(self.at, into)
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
        self.file.forget(at);
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
            self.file.cut(start);
        }
    }
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
    }
}
