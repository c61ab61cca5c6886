//! Alias analysis: where each value lies, and which values share storage.
//!
//! The invariant: every value that lies in somebody's bytes is listed among those that share them.

use std::collections::{HashMap, HashSet};

use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::ValueId;
use tonnage_core::layout::Layout;

use crate::plan::{At, BufferId, Placed};

/// Whose bytes, as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StorageKey {
    /// Those of an input.
    Input(usize),
    /// Those of a buffer.
    Buffer(usize),
    /// Those that the caller gave for an output.
    Output(usize),
}

/// Whose bytes a place is in; nobody's for a recipe.
pub(crate) fn store(at: &At) -> Option<StorageKey> {
    match at {
        At::Input(i) => Some(StorageKey::Input(*i)),
        At::Buffer(b) => Some(StorageKey::Buffer(b.0)),
        At::Output(k) => Some(StorageKey::Output(*k)),
        At::Recipe(_) => None,
    }
}

/// The places of all values of a graph.
pub(super) struct Places {
    /// By the number of the value.
    of: Vec<Option<Placed>>,
    /// Values that lie in the same storage.
    sharing: HashMap<StorageKey, Vec<ValueId>>,
    /// Views that are laid out as they run: where their elements lie is not known yet.
    laid_out_late: HashSet<ValueId>,
}

impl Places {
    /// No place yet for any of so many values.
    pub fn new(values: usize) -> Places {
        Places { of: vec![None; values], sharing: HashMap::new(), laid_out_late: HashSet::new() }
    }

    /// Gives a value its place.
    pub fn put(&mut self, id: ValueId, placed: Placed) {
        if let Some(key) = store(&placed.at) {
            self.sharing.entry(key).or_default().push(id);
        }
        self.of[id.index()] = Some(placed);
    }

    /// Gives a view its place, with a layout that is known as it runs: the one here is that at the bound of its sizes.
    pub fn put_late(&mut self, id: ValueId, at_bound: Placed) {
        self.put(id, at_bound);
        self.laid_out_late.insert(id);
    }

    /// Lets a value lie otherwise in its bytes.
    pub fn lay_out(&mut self, id: ValueId, layout: Layout) {
        if let Some(placed) = &mut self.of[id.index()] {
            placed.layout = layout;
        }
    }

    /// The place of a value, if it has one yet.
    pub fn find(&self, id: ValueId) -> Option<&Placed> {
        self.of[id.index()].as_ref()
    }

    /// The place of a value that has one.
    pub fn get(&self, id: ValueId) -> Result<&Placed> {
        self.find(id).ok_or_else(|| {
            ErrorKind::BadGraph { what: format!("%{} has no place", id.index()) }.into()
        })
    }

    /// The buffer that a value lies in.
    pub fn buffer(&self, id: ValueId) -> Option<BufferId> {
        match self.find(id)?.at {
            At::Buffer(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// Whether a value fills its storage from the start on, close together.
    pub fn lies_whole(&self, id: ValueId) -> bool {
        let whole = |placed: &Placed| placed.layout.offset == 0 && placed.layout.is_contiguous();
        self.find(id).is_some_and(whole) && !self.laid_out_late.contains(&id)
    }

    /// All values that lie in some storage.
    pub fn sharing(&self, key: StorageKey) -> &[ValueId] {
        self.sharing.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Everything in a buffer lies in an output's bytes instead.
    pub fn move_to_output(&mut self, buffer: BufferId, k: usize) {
        let sharing = self.sharing.remove(&StorageKey::Buffer(buffer.0)).unwrap_or_default();
        for id in &sharing {
            if let Some(placed) = &mut self.of[id.index()] {
                placed.at = At::Output(k);
            }
        }
        self.sharing.insert(StorageKey::Output(k), sharing);
    }

    /// All places, by the number of the value.
    pub fn all(&self) -> &[Option<Placed>] {
        &self.of
    }

    /// The same, as a plan keeps them.
    pub fn into_all(self) -> Vec<Option<Placed>> {
        self.of
    }
}
