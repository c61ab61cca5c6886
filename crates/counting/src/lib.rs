//! For tests: a global allocator that counts what a piece of code allocates. Nothing that users run depends
//! on it.
//!
//! [`count`] is armed on its own thread, so tests that run side by side do not see each other; work that is
//! handed to another thread is counted there and added with [`add`]. [`everywhere`] counts on all threads.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: tonnage_counting::Counting = tonnage_counting::Counting;
//!
//! let (_, seen) = tonnage_counting::count(|| vec![0u8; 1000]);
//! assert_eq!((seen.times, seen.largest), (1, 1000));
//! ```
#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// What was allocated, or grown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many times.
    pub times: usize,
    /// The most bytes at once.
    pub largest: usize,
}

impl Seen {
    const NOTHING: Seen = Seen { times: 0, largest: 0 };

    fn and(self, other: Seen) -> Seen {
        Seen { times: self.times + other.times, largest: self.largest.max(other.largest) }
    }
}

thread_local! {
    /// `None` while this thread is not counted.
    static SEEN: Cell<Option<Seen>> = const { Cell::new(None) };
}

/// What `f` allocates on this thread. Calls may be nested: the outer one sees what the inner one saw.
pub fn count<R>(f: impl FnOnce() -> R) -> (R, Seen) {
    let before = SEEN.replace(Some(Seen::NOTHING));
    let made = f();
    let seen = SEEN.replace(before).unwrap_or_default();
    add(seen);
    (made, seen)
}

static ARMED: AtomicBool = AtomicBool::new(false);
static TIMES: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// What all threads allocate while `f` runs. One call at a time: two would see each other.
pub fn everywhere<R>(f: impl FnOnce() -> R) -> (R, Seen) {
    TIMES.store(0, Relaxed);
    LARGEST.store(0, Relaxed);
    ARMED.store(true, Relaxed);
    let made = f();
    ARMED.store(false, Relaxed);
    (made, Seen { times: TIMES.load(Relaxed), largest: LARGEST.load(Relaxed) })
}

/// Runs `f` without counting what it allocates: what a test does beside what it watches.
pub fn aside<R>(f: impl FnOnce() -> R) -> R {
    let before = SEEN.replace(None);
    let made = f();
    SEEN.set(before);
    made
}

/// Adds what was seen elsewhere to what this thread counts, if it does.
pub fn add(seen: Seen) {
    SEEN.set(SEEN.get().map(|mine| mine.and(seen)));
}

static LIVE: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

/// Bytes of the whole process that are allocated now.
pub fn live() -> isize {
    LIVE.load(Relaxed)
}

/// The most that is allocated at once in the whole process while `f` runs, beyond what was allocated before. One call at
/// a time: two would see each other.
pub fn most<R>(f: impl FnOnce() -> R) -> (R, isize) {
    let before = live();
    MOST.store(before, Relaxed);
    let made = f();
    (made, MOST.load(Relaxed) - before)
}

/// The system's allocator, counted.
#[derive(Debug)]
pub struct Counting;

/// Notes a request for so many bytes, by which so many more are allocated.
fn note(size: usize, more: isize) {
    let live = LIVE.fetch_add(more, Relaxed) + more;
    MOST.fetch_max(live, Relaxed);
    if ARMED.load(Relaxed) {
        TIMES.fetch_add(1, Relaxed);
        LARGEST.fetch_max(size, Relaxed);
    }
    // While a thread ends there is nothing to count in, and nobody counts.
    let _ = SEEN.try_with(|seen| {
        let one = Seen { times: 1, largest: size };
        seen.set(seen.get().map(|mine| mine.and(one)));
    });
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: what the caller promises is passed on as it came.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), layout.size() as isize);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: what the caller promises is passed on as it came.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), layout.size() as isize);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: what the caller promises is passed on as it came.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, size as isize - layout.size() as isize);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.realloc(at, layout, size) }
    }

    // SAFETY: what the caller promises is passed on as it came.
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn allocations_are_counted_where_the_thread_is_armed_and_nowhere_else() {
        let seen = |f: fn()| count(f).1;
        assert_eq!(seen(|| ()), Seen::NOTHING);
        assert_eq!(seen(|| drop(vec![1u8; 100])), Seen { times: 1, largest: 100 });
        assert_eq!(seen(|| drop(vec![0u8; 100])), Seen { times: 1, largest: 100 });
        assert_eq!(seen(|| drop(aside(|| vec![1u8; 100]))), Seen::NOTHING);
        let grown = || {
            let mut list = Vec::<u8>::with_capacity(10);
            list.reserve(50);
        };
        assert_eq!(count(grown).1, Seen { times: 2, largest: 50 });
        assert_eq!(SEEN.get(), None);
    }

    #[test]
    fn what_other_threads_allocate_is_counted_where_it_is_added() {
        let work = || {
            let counted = || count(|| drop(vec![1u8; 100])).1;
            let there = aside(|| std::thread::spawn(counted).join().unwrap());
            add(there);
            let ((), here) = count(|| drop(vec![1u8; 10]));
            assert_eq!(here, Seen { times: 1, largest: 10 });
        };
        assert_eq!(count(work).1, Seen { times: 2, largest: 100 });
        // Other tests allocate at the same time, but nothing as large.
        let apart = || std::thread::spawn(|| drop(vec![1u8; 1 << 20])).join().unwrap();
        let ((), seen) = everywhere(apart);
        assert!(seen.times >= 1 && seen.largest == 1 << 20, "{seen:?}");
    }
}
