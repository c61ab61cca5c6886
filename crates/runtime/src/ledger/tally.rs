//! Bytes that are no tensor's: what traces and plans take of Rust's allocator.
//!
//! They are in the ledger with kind, name and line, and apart from what is in use: a plan's peak speaks of
//! the tensors of a call, and the plan itself is no part of it. Their own bound is that of the cache that
//! holds them (see `tonnage::Function::graph_limit`), not the limit of the device.
//!
//! Decision: `docs/decisions/graphs-are-counted-apart.md`.

use std::fmt;

use tonnage_core::Bytes;

use super::{Id, Ledger, Owner};

/// A figure in the ledger that its holder keeps up to date. Dropping it takes it out.
pub struct Tally {
    ledger: Ledger,
    id: Id,
}

impl Ledger {
    /// An entry of no bytes for that owner, which grows as it is told.
    ///
    /// ```
    /// use tonnage_core::{Bytes, Kind};
    /// use tonnage_runtime::{Ledger, Owner};
    /// let ledger = Ledger::new(None);
    /// let tally = ledger.tally(Owner::new(Kind::Graph, "function"));
    /// tally.set(Bytes::new(4096));
    /// assert_eq!((ledger.info().graphs, ledger.info().in_use), (Bytes::new(4096), Bytes::ZERO));
    /// drop(tally);
    /// assert_eq!(ledger.info().graphs, Bytes::ZERO);
    /// ```
    pub fn tally(&self, owner: Owner) -> Tally {
        Tally { ledger: self.clone(), id: self.books().begin_tally(owner) }
    }
}

impl Tally {
    /// What its holder takes now.
    pub fn set(&self, bytes: Bytes) {
        self.ledger.books().set_tally(self.id, bytes);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.ledger.books().end_tally(self.id);
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tally")
    }
}
