//! Which storages the traces of functions and sessions hold: what [`memory::why`](crate::memory::why) asks.
//!
//! Addresses, not handles: a trace that is remembered holds its captured tensors itself, so an address stays theirs for as
//! long as it is listed, and being listed keeps nothing alive.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tonnage_runtime::Owner;

use super::program::{Program, lock};

/// The storages that one cache holds.
pub(crate) struct Captures {
    owner: Owner,
    held: Mutex<Vec<usize>>,
}

static ALL: Mutex<Vec<Weak<Captures>>> = Mutex::new(Vec::new());

impl Captures {
    pub fn new(owner: Owner) -> Arc<Captures> {
        let made = Arc::new(Captures { owner, held: Mutex::default() });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are gone make room for those that come.
        if all.len() == all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(&made));
        made
    }

    /// One more program is remembered.
    pub fn add(&self, program: &Program) {
        lock(&self.held).extend(addresses(program));
    }

    /// These programs are remembered, and no others.
    pub fn set<'a>(&self, programs: impl Iterator<Item = &'a Program>) {
        *lock(&self.held) = programs.flat_map(addresses).collect();
    }
}

fn addresses(program: &Program) -> impl Iterator<Item = usize> + '_ {
    let arrays = program.captured.iter().filter_map(|tensor| tensor.array("captured").ok());
    arrays.map(|array| std::ptr::from_ref(array.storage()) as usize)
}

/// The functions and sessions that hold a storage, each with how often.
pub(crate) fn holders(storage: usize) -> Vec<(Owner, usize)> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let count = |one: Arc<Captures>| {
        let times = lock(&one.held).iter().filter(|held| **held == storage).count();
        (times > 0).then(|| (one.owner.clone(), times))
    };
    all.iter().filter_map(Weak::upgrade).filter_map(count).collect()
}
