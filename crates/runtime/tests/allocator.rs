//! Tensor bytes come from nowhere but the ledger's blocks, and its books are small: a counting global
//! allocator sees no large allocation.
#![cfg(unix)]

use tonnage_core::{Bytes, Kind};
use tonnage_counting::{Counting, count};
use tonnage_runtime::{Arena, Buffer, Ledger, Owner};

#[global_allocator]
static COUNTING: Counting = Counting;

/// The largest allocation that `f` makes, and how many there are.
fn largest(f: impl FnOnce()) -> (usize, usize) {
    let ((), seen) = count(f);
    (seen.largest, seen.times)
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
            Buffer::obtain(&ledger, size, owner()).unwrap().bytes_mut().unwrap()[5] = 1;
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
