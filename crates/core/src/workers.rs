//! What a kernel knows about threads: how many there are, and how to run two things at once.
//!
//! Core holds the trait alone; the pool behind it lives in `runtime`. `join` is enough to split any
//! work with `split_at_mut`, so kernels share an output among threads without `unsafe` and without
//! allocating.

use std::ops::Range;

/// Threads that are lent to a kernel.
pub trait Workers: Sync {
    /// How many threads may run at once; at least 1.
    fn threads(&self) -> usize;

    /// Runs both, at the same time where a thread is free; returns when both have ended.
    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send));
}

/// The caller's own thread and no other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Workers for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        a();
        b();
    }
}

/// Cuts `data` into chunks of `chunk` elements (the last may be shorter) and calls `f(index, chunk)`
/// for each, on as many threads as are free.
///
/// Which thread gets which chunk is open; a result that is a function of `index` and the chunk alone
/// is therefore the same at every thread count.
///
/// ```
/// use tonnage_core::workers::{Alone, for_each_chunk};
/// let mut data = vec![0u32; 10];
/// for_each_chunk(&Alone, &mut data, 4, &|index, chunk| chunk.fill(index as u32));
/// assert_eq!(data, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
/// ```
pub fn for_each_chunk<T: Send>(
    workers: &dyn Workers,
    data: &mut [T],
    chunk: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let (len, chunk) = (data.len(), chunk.max(1));
    for_each_part(workers, data, len.div_ceil(chunk), &|i| (i * chunk).min(len), f);
}

/// Cuts `data` into `count` parts, of which part `i` goes from `start(i)` to `start(i + 1)`, and calls
/// `f(index, part)` for each, on as many threads as are free.
///
/// ```
/// use tonnage_core::workers::{Alone, for_each_part};
/// let mut data = vec![0u32; 6];
/// for_each_part(&Alone, &mut data, 3, &|i| i * (i + 1) / 2, &|i, part| part.fill(i as u32));
/// assert_eq!(data, [0, 1, 1, 2, 2, 2]);
/// ```
pub fn for_each_part<T: Send>(
    workers: &dyn Workers,
    data: &mut [T],
    count: usize,
    start: &(dyn Fn(usize) -> usize + Sync),
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    // Four pieces a thread: a thread that is held up leaves work for the others.
    let grain = match workers.threads() {
        0 | 1 => count,
        threads => count.div_ceil(4 * threads),
    };
    split(workers, data, 0..count, start, grain, f);
}

fn split<T: Send>(
    workers: &dyn Workers,
    mut data: &mut [T],
    parts: Range<usize>,
    start: &(dyn Fn(usize) -> usize + Sync),
    grain: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    if parts.len() <= grain {
        for i in parts {
            let (part, rest) = data.split_at_mut(start(i + 1) - start(i));
            f(i, part);
            data = rest;
        }
        return;
    }
    let half = parts.start + parts.len() / 2;
    let (left, right) = data.split_at_mut(start(half) - start(parts.start));
    let (first, second) = (parts.start..half, half..parts.end);
    workers.join(&mut || split(workers, left, first.clone(), start, grain, f), &mut || {
        split(workers, right, second.clone(), start, grain, f);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

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
                });
                let expected: Vec<_> = (0..len).map(|i| i / chunk + 1).collect();
                assert_eq!(data, expected, "len {len}, chunk {chunk}");
            }
        }
    }
}
