//! Threads for the tests: real ones, as many as asked for, and the second half first where none is free.

use std::sync::atomic::{AtomicUsize, Ordering};

use tonnage_counting::{add, aside, count};
use tonnage_cpu::workers::Workers;

/// A number of threads.
pub struct Team {
    threads: usize,
    free: AtomicUsize,
}

impl Team {
    /// A number of threads, the caller's own among them.
    pub fn new(threads: usize) -> Team {
        Team { threads, free: AtomicUsize::new(threads - 1) }
    }
}

impl Workers for Team {
    fn threads(&self) -> usize {
        self.threads
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        let taken =
            self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        if taken.is_err() {
            b();
            return a();
        }
        // What the threads allocate is counted, but not what it takes to start them.
        let (here, there) = aside(|| {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| count(b).1);
                (count(a).1, other.join().expect("a thread that ended well"))
            })
        });
        add(here);
        add(there);
        self.free.fetch_add(1, Ordering::AcqRel);
    }
}
