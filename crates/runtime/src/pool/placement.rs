//! Threads of a pool that run together begin on different cores.
//!
//! A virtual machine's system takes a core that sleeps for one that is taken, and wakes threads that hand work to each other
//! on one core. There they stay for milliseconds, each at half of its speed, beside a core that sleeps. So a
//! thread that is about to wake the others sends each to a core of its own. Once there they may run anywhere.
//!
//! Decision: `docs/decisions/threads-start-on-different-cores.md`.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use crate::system::cores::{Cores, ThreadId, here};

/// Where the threads of a pool are.
#[derive(Debug)]
pub(super) struct ThreadPlacement(Box<[ThreadCore]>);

#[derive(Debug, Default)]
struct ThreadCore {
    /// The thread, once it has started.
    thread: OnceLock<ThreadId>,
    /// The core that it was seen on last.
    core: AtomicUsize,
    /// Is it at work?
    is_busy: AtomicBool,
    /// Was it sent to that core, and not seen there yet?
    is_sent: AtomicBool,
    /// Where it may run as soon as it was.
    before: Mutex<Option<Cores>>,
}

thread_local! {
    /// The places of the pool that this thread is of, and which of them is its own.
    static OWN: OnceCell<(Arc<ThreadPlacement>, usize)> = const { OnceCell::new() };
}

/// The calling thread is where it is, and at work or not. Said whenever a thread of a pool begins to work, and at the end.
pub(super) fn seen(is_busy: bool) {
    with_own(|places, own| places.0[own].seen(is_busy));
}

/// The threads of the pool that sleep will not be woken on the core of the calling one, nor two on any.
pub(super) fn spread() {
    with_own(ThreadPlacement::spread);
}

fn with_own(f: impl FnOnce(&ThreadPlacement, usize)) {
    OWN.with(|own| {
        if let Some((places, own)) = own.get() {
            f(places, *own);
        }
    });
}

impl ThreadPlacement {
    /// For that many threads.
    pub(super) fn new(threads: usize) -> Arc<ThreadPlacement> {
        Arc::new(ThreadPlacement((0..threads).map(|_| ThreadCore::default()).collect()))
    }

    /// The calling thread is that of a place.
    pub(super) fn start(self: Arc<ThreadPlacement>, own: usize) {
        let (Some(place), Some(thread)) = (self.0.get(own), ThreadId::own()) else { return };
        place.thread.get_or_init(|| thread);
        place.seen(false);
        OWN.with(|cell| {
            cell.get_or_init(|| (self, own));
        });
    }

    fn spread(&self, own: usize) {
        self.0[own].settle();
        let Some(allowed) = ThreadId::own().and_then(Cores::of) else { return };
        let mut free: SmallVec<[usize; 16]> = allowed.each().collect();
        take(&mut free, self.0[own].core());
        let mut met: SmallVec<[&ThreadCore; 16]> = SmallVec::new();
        let asleep = |(at, place): &(usize, &ThreadCore)| *at != own && !place.is_busy();
        for (_, place) in self.0.iter().enumerate().filter(asleep) {
            let core = place.core();
            match take(&mut free, core) {
                true => place.send(core, &allowed),
                false => met.push(place),
            }
        }
        met.iter().zip(free).for_each(|(place, core)| place.send(core, &allowed));
    }
}

/// Takes a core out of those that are free. False where it is not among them.
fn take(free: &mut SmallVec<[usize; 16]>, core: usize) -> bool {
    let found = free.iter().position(|free| *free == core);
    found.map(|at| free.swap_remove(at)).is_some()
}

impl ThreadCore {
    fn core(&self) -> usize {
        self.core.load(Ordering::Relaxed)
    }

    fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    fn seen(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::Relaxed);
        self.settle();
    }

    /// The thread is where it runs, and where it was sent.
    fn settle(&self) {
        if let Some(core) = here() {
            self.core.store(core, Ordering::Relaxed);
        }
        if self.is_sent.load(Ordering::Relaxed) {
            self.arrive();
        }
    }

    /// The thread may run anywhere again.
    #[cold]
    fn arrive(&self) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_sent.store(false, Ordering::Relaxed);
        if let (Some(cores), Some(thread)) = (before.take(), self.thread.get()) {
            cores.hold(*thread);
        }
    }

    /// Has the thread wake on that core; then it may run on all that are allowed.
    fn send(&self, core: usize, allowed: &Cores) {
        let (Some(thread), Some(one)) = (self.thread.get(), Cores::one(core)) else { return };
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if one.hold(*thread) {
            *before = Some(*allowed);
            self.core.store(core, Ordering::Relaxed);
            self.is_sent.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use tonnage_core::row::Cost;

    use super::*;
    use crate::pool::WorkerPool;

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_that_met_are_sent_apart_and_then_may_run_anywhere() {
        const LARGE_WORK: Cost = Cost::local(0, 1 << 30);
        let cores = |thread| Cores::of(thread).unwrap().each().collect::<Vec<_>>();
        let allowed = cores(ThreadId::own().unwrap());
        if allowed.len() < 2 {
            return; // they cannot but meet
        }
        let pool = WorkerPool::new(2).unwrap();
        let own = || OWN.with(|own| own.get().map(|(places, own)| (Arc::clone(places), *own)));
        for core in &allowed[..2] {
            // Both work, so both have started and nobody is sent. They sleep or are about to.
            pool.run(LARGE_WORK, |_| rayon_core::broadcast(|_| seen(false)));
            let (places, _) = pool.run(LARGE_WORK, |_| own()).unwrap();
            places.0.iter().for_each(|place| place.core.store(*core, Ordering::Relaxed));
            let (one, other) = pool.run(LARGE_WORK, |_| {
                let (places, own) = own().unwrap();
                let other = &places.0[1 - own];
                assert_eq!(cores(*other.thread.get().unwrap()), [other.core()]);
                (places.0[own].core(), other.core())
            });
            assert_ne!(one, other);
            pool.run(LARGE_WORK, |_| rayon_core::broadcast(|_| seen(false)));
            for place in &places.0 {
                assert_eq!(cores(*place.thread.get().unwrap()), allowed);
            }
        }
    }

    #[test]
    fn more_threads_than_cores_run_all_the_same() {
        let pool = WorkerPool::new(64).unwrap();
        let sum =
            pool.inside(|| rayon_core::broadcast(|place| place.index()).iter().sum::<usize>());
        assert_eq!(sum, 63 * 64 / 2);
    }
}
