//! Eviction: what eager mode does under a limit before it says that there is no memory.
//!
//! The policy. Nothing happens without a limit, or while what is asked for fits. Where it does not, large tensors
//! (those of a page range of their own, 32 KiB and more) that nobody has pinned leave memory until it does:
//!
//! 1. those whose bytes are elsewhere already: a recipe that had become resident, or a tensor that was moved out before and has
//!    not been written since. They cost nothing now, and a computation or a read later;
//! 2. all others, by being written to a file.
//!
//! Within each, what was used longest ago goes first, and what turns out not to be needed, since larger ones
//! followed, stays. A tensor comes back when it is next read, under the owner and line that it had, and may send
//! others away for that. Bytes come back as they were, and recipes give the bits of resident tensors, so no
//! result changes. Where nothing can leave, the error is the one that it always was.
//!
//! To recompute an evicted tensor from its parents was rejected: it needs the parents in memory beside it just when
//! there is no room, it has to know that none of them was written since, and every op of eager mode
//! would have to remember what it did. A chain of recipes is that, without any of the three.
//!
//! The order of locks: a storage, then the list of residents, then the ledger; the file's lock is held for a
//! read or a write and takes no other. A thread that makes room may have pinned storages, so
//! he never waits for one: a storage that is not free at once is in use, and stays. For the same reason
//! nobody waits to *write* a storage that others may share (see `storage`).
//!
//! Decision: `docs/decisions/eviction-under-a-limit.md`.

mod eviction_file;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tonnage_core::{Bytes, Result};

use crate::ledger::{Id, Ledger, Slab};
use crate::storage::Large;
pub(crate) use eviction_file::{EvictedRange, EvictionFile};

/// The large storages of a device that have bytes or had some.
#[derive(Debug)]
pub(crate) struct Residents {
    seats: Mutex<Slab<Weak<Large>>>,
    /// Uses so far: the time of "longest ago".
    clock: AtomicU64,
    /// Made when the first tensor is written to it.
    store: Mutex<Option<Arc<EvictionFile>>>,
}

/// A place in the list, given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    ledger: Ledger,
    id: Id,
}

/// What could leave.
struct EvictionCandidate {
    storage: Arc<Large>,
    /// Its bytes are elsewhere already.
    is_free: bool,
    used: u64,
    bytes: Bytes,
}

impl Residents {
    pub(crate) fn new() -> Residents {
        let (clock, store) = (AtomicU64::new(0), Mutex::new(None));
        Residents { seats: Mutex::new(Slab::new()), clock, store }
    }

    /// The time of a use.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets tensors leave until `needed` bytes are free or nothing more can; says how many are. Those whose
    /// entries in the ledger are `excluded` stay.
    pub(crate) fn make_room(&self, needed: Bytes, excluded: &[Id]) -> Result<Bytes> {
        let mut freed = Bytes::ZERO;
        for candidate in chosen(self.candidates(excluded), needed) {
            if freed >= needed {
                break;
            }
            freed += candidate.storage.evict(&|| self.store())?;
        }
        Ok(freed)
    }

    /// Bytes of tensors that live and are not in memory.
    pub(crate) fn away(&self) -> Bytes {
        self.living().iter().map(|large| large.away()).sum()
    }

    fn candidates(&self, excluded: &[Id]) -> Vec<EvictionCandidate> {
        let living = self.living().into_iter();
        living
            .filter_map(|storage| {
                let (bytes, is_free) = storage.could_leave(excluded)?;
                Some(EvictionCandidate { is_free, used: storage.used(), bytes, storage })
            })
            .collect()
    }

    /// All that live. Held for a moment: the last handle may be dropped here, outside of the lock.
    fn living(&self) -> Vec<Arc<Large>> {
        lock(&self.seats).iter().filter_map(Weak::upgrade).collect()
    }

    fn store(&self) -> Result<Arc<EvictionFile>> {
        let mut store = lock(&self.store);
        match &*store {
            Some(store) => Ok(store.clone()),
            None => Ok(store.insert(Arc::new(EvictionFile::open()?)).clone()),
        }
    }
}

/// Those that go, in the order in which they go: enough, and none that could stay.
fn chosen(mut all: Vec<EvictionCandidate>, needed: Bytes) -> Vec<EvictionCandidate> {
    all.sort_by_key(|c| (Reverse(c.is_free), c.used));
    let mut sum = Bytes::ZERO;
    let enough = all.iter().position(|c| {
        sum += c.bytes;
        sum >= needed
    });
    // Where all of them are not enough, all go: another thread may free the rest meanwhile.
    let Some(last) = enough else { return all };
    all.truncate(last + 1);
    // From the most recently used back: what need not go stays.
    let mut stays = vec![false; all.len()];
    for (i, candidate) in all.iter().enumerate().rev() {
        if sum.saturating_sub(candidate.bytes) >= needed {
            sum = sum.saturating_sub(candidate.bytes);
            stays[i] = true;
        }
    }
    all.into_iter().zip(stays).filter(|(_, stays)| !stays).map(|(c, _)| c).collect()
}

impl Seat {
    pub(crate) fn take(ledger: &Ledger, storage: &Arc<Large>) -> Seat {
        let id = lock(&ledger.residents().seats).insert(Arc::downgrade(storage));
        Seat { ledger: ledger.clone(), id }
    }

    /// The ledger whose list it is a place of.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The list.
    pub(crate) fn residents(&self) -> &Residents {
        self.ledger.residents()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.ledger.residents().seats).remove(self.id, |_| ());
    }
}

/// Nothing panics while it holds one of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
