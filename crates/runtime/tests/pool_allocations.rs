//! What lending threads allocates, on all threads: a test of its own, since a second one beside it would be counted.
#![cfg(unix)]

use std::sync::Barrier;

use tonnage_core::row::Cost;
use tonnage_counting::{Counting, everywhere};
use tonnage_cpu::workers::for_each_chunk;
use tonnage_runtime::WorkerPool;

#[global_allocator]
static COUNTING: Counting = Counting;

/// What the threads themselves allocate: nothing for a join, and a block of their queue now and then for a call
/// that comes from outside. Kernels are counted without them (the conformance tests of the table).
#[test]
fn lent_threads_allocate_nothing_inside_the_pool() {
    let pool = WorkerPool::new(2).unwrap();
    let large = Cost::local(0, 1 << 30);
    let mut data = vec![0u32; 1 << 14];
    let mut work = |times: usize| {
        for _ in 0..times {
            pool.run(large, |workers| for_each_chunk(workers, &mut data, 64, &|_, x| x.fill(1)))
                .unwrap();
        }
    };
    // Each thread makes its own books when it first takes work of another's: both are made to.
    let meet = Barrier::new(2);
    let wait = || {
        meet.wait();
    };
    pool.run(large, |workers| workers.join(&mut || wait(), &mut || wait()));
    pool.inside(|| work(100));
    let inside = pool.inside(|| everywhere(|| work(1000)).1);
    let outside = everywhere(|| work(1000)).1;
    println!("{inside:?} {outside:?}");
    assert_eq!(inside.times, 0);
    assert!(outside.times <= 50, "{outside:?}");
}
