//! A process of its own, for an allocator that counts: what it counts, and what is resident, is the whole process's. So these
//! tests run one at a time.

#[path = "../common/mod.rs"]
mod common;

mod caches;
mod planning_memory;
mod steady;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage::Entered;
use tonnage_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A context of the test's own, and no other test meanwhile.
fn one_at_a_time() -> (Entered, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (common::own_context(), turn)
}
