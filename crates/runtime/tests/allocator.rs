//! Tensor bytes come from nowhere but the ledger's blocks, and its books are small: a counting global
//! allocator sees no large allocation.
#![cfg(unix)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_core::row::Cost;
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Bytes, Kind};
use tonnage_counting::{Counting, count, everywhere};
use tonnage_runtime::{Arena, Buffer, Ledger, Owner, Pool};

#[global_allocator]
static COUNTING: Counting = Counting;

/// The largest allocation that `f` makes, and how many there are.
fn largest(f: impl FnOnce()) -> (usize, usize) {
    let ((), seen) = count(f);
    (seen.largest, seen.times)
}

/// What all threads allocate is counted by one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn owner() -> Owner {
    Owner::new(Kind::Activation, "test")
}

#[test]
fn large_buffers_and_their_books_leave_the_heap_alone() {
    let _turn = alone();
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

/// What the threads themselves allocate: nothing for a join, and a block of their queue now and then for a call
/// that comes from outside. Kernels are counted without them (the conformance tests of the table).
#[test]
fn lent_threads_allocate_nothing_inside_the_pool() {
    let _turn = alone();
    let pool = Pool::new(2).unwrap();
    let large = Cost { flops: 0, bytes: 1 << 30 };
    let mut data = vec![0u32; 1 << 14];
    let mut work = |times: usize| {
        for _ in 0..times {
            pool.run(large, |workers| for_each_chunk(workers, &mut data, 64, &|_, x| x.fill(1)));
        }
    };
    pool.inside(|| work(100));
    let inside = pool.inside(|| everywhere(|| work(1000)).1);
    let outside = everywhere(|| work(1000)).1;
    println!("{inside:?} {outside:?}");
    assert_eq!(inside.times, 0);
    assert!(outside.times <= 50, "{outside:?}");
}
