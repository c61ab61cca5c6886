//! Work cut among threads: every chunk once, and none once it is stopped.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tonnage_core::ErrorKind;
use tonnage_cpu::workers::{Alone, Single, Workers, for_each_chunk};

/// Pretends to have threads, so that the splitting is exercised on one.
struct Two;
impl Workers for Two {
    fn threads(&self) -> usize {
        2
    }
    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        b();
        a();
    }
}

#[test]
fn every_chunk_is_visited_once_with_its_own_index() {
    for len in [0, 1, 7, 8, 9, 100, 1000] {
        for chunk in [1, 3, 8, 2000] {
            let mut data = vec![0usize; len];
            for_each_chunk(&Two, &mut data, chunk, &|i, piece| {
                piece.iter_mut().for_each(|x| *x += i + 1);
            })
            .unwrap();
            let expected: Vec<_> = (0..len).map(|i| i / chunk + 1).collect();
            assert_eq!(data, expected, "len {len}, chunk {chunk}");
        }
    }
}

/// Stops when it was asked this many times.
struct Stops(AtomicUsize);
impl Workers for Stops {
    fn threads(&self) -> usize {
        1
    }
    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        Alone.join(a, b);
    }
    fn is_stopped(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn no_chunk_is_visited_once_the_work_is_stopped() {
    for visited in 0..10 {
        let mut data = vec![false; 10];
        let workers = Stops(AtomicUsize::new(visited));
        let ended = for_each_chunk(&Single(&workers), &mut data, 1, &|_, piece| piece[0] = true);
        assert!(matches!(ended.unwrap_err().kind(), ErrorKind::Interrupted));
        assert_eq!(data.iter().filter(|x| **x).count(), visited);
    }
}
