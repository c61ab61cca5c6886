//! Which storages the traces of functions and sessions hold: what [`memory::why`](crate::memory::why) asks.
//!
//! Addresses, not handles: a trace that is cached holds its captured tensors itself, so an address stays theirs for as
//! long as it is listed, and being listed keeps nothing alive.

use std::sync::{Arc, Mutex, Weak};

use tonnage_core::Source;
use tonnage_runtime::{Context, Owner};

use super::lock;
use super::program::TracedProgram;

/// A storage that is held: its address, and the line that its bytes are from, where it has any.
#[derive(Clone, Copy)]
pub(crate) struct HeldStorage {
    pub storage: usize,
    pub from: Option<Source>,
}

/// The storages that one cache holds.
pub(crate) struct Captures {
    owner: Owner,
    held: Mutex<Vec<HeldStorage>>,
}

/// Those of a context.
#[derive(Default)]
struct AllCaptures(Mutex<Vec<Weak<Captures>>>);

impl Captures {
    pub fn new(owner: Owner) -> Arc<Captures> {
        let made = Arc::new(Captures { owner, held: Mutex::default() });
        let all = Context::current().local::<AllCaptures>();
        let mut all = lock(&all.0);
        // Those that are gone make room for those that come.
        if all.len() == all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(&made));
        made
    }

    /// One more program is cached.
    pub fn add(&self, program: &TracedProgram) {
        lock(&self.held).extend(storages(program));
    }

    /// These programs are cached, and no others.
    pub fn set<'a>(&self, programs: impl Iterator<Item = &'a TracedProgram>) {
        *lock(&self.held) = programs.flat_map(storages).collect();
    }
}

fn storages(program: &TracedProgram) -> impl Iterator<Item = HeldStorage> + '_ {
    let arrays = program.captured.iter().filter_map(|tensor| tensor.array("captured").ok());
    arrays.map(|array| {
        let storage = array.storage();
        HeldStorage {
            storage: std::ptr::from_ref(storage) as usize,
            from: storage.owner().map(|owner| owner.source),
        }
    })
}

/// The functions and sessions that hold something, each with what of it.
pub(crate) fn holders(is_it: impl Fn(HeldStorage) -> bool) -> Vec<(Owner, Vec<HeldStorage>)> {
    let all = Context::current().local::<AllCaptures>();
    let of = |one: Arc<Captures>| {
        let held: Vec<HeldStorage> =
            lock(&one.held).iter().copied().filter(|held| is_it(*held)).collect();
        (!held.is_empty()).then(|| (one.owner.clone(), held))
    };
    lock(&all.0).iter().filter_map(Weak::upgrade).filter_map(of).collect()
}
