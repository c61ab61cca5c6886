//! Tensor bytes come from nowhere but the ledger's blocks, and its books are small: a counting global
//! allocator sees no large allocation.
#![cfg(unix)]
#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tonnage_core::{Bytes, Kind};
use tonnage_runtime::{Arena, Buffer, Ledger, Owner};

thread_local! {
    /// The largest allocation of this thread, and how many there were.
    static SEEN: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

struct Counting;

// SAFETY: hands everything on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: as the trait asks of the caller.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (largest, times) = SEEN.get();
        SEEN.set((largest.max(layout.size()), times + 1));
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: as the trait asks of the caller.
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The largest allocation that `f` makes, and how many there are.
fn largest(f: impl FnOnce()) -> (usize, usize) {
    SEEN.set((0, 0));
    f();
    SEEN.get()
}

fn owner() -> Owner {
    Owner::new(Kind::Activation, "test")
}

#[test]
fn large_buffers_and_their_books_leave_the_heap_alone() {
    let ledger = Ledger::new(None);
    let size = Bytes::mib(100);

    // The first ones make the books; later ones allocate nothing at all.
    let obtain_and_free = || drop(Buffer::obtain(&ledger, size, owner()).unwrap());
    for _ in 0..2 {
        let (first, _) = largest(obtain_and_free);
        assert!(0 < first && first < 8192, "{first}");
    }
    let (_, times) = largest(|| {
        for _ in 0..3 {
            Buffer::obtain(&ledger, size, owner()).unwrap().bytes_mut()[5] = 1;
        }
    });
    assert_eq!(times, 0);

    let (arena, _) = largest(|| {
        let arena = Arena::obtain(&ledger, size, owner()).unwrap();
        let parts = arena.into_parts(&[(4096..20 << 20, owner()), (50 << 20..60 << 20, owner())]);
        assert_eq!(parts.unwrap().len(), 2);
    });
    assert!(arena < 8192, "{arena}");

    // And the allocator does see what comes from the heap: one small buffer, and nothing else.
    let small = largest(|| drop(Buffer::obtain(&ledger, Bytes::new(20_000), owner()).unwrap()));
    assert_eq!(small, (20_032 + 64, 1)); // and a line to start on
}
