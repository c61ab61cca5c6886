//! What a kernel knows about threads: how many there are, and how to run two things at once.
//!
//! The trait alone is here; the pool behind it lives in `runtime`. `join` is enough to split any
//! work with `split_at_mut`, so kernels share an output among threads without `unsafe` and without
//! allocating.
//!
//! A kernel may be stopped between two pieces of its work, by whoever lent it the threads. What hands out pieces asks
//! before each one and ends with [`ErrorKind::Interrupted`], so that nothing goes on with results that are half made.

use std::ops::Range;

use tonnage_core::error::{ErrorKind, Result};

/// Threads that are lent to a kernel.
pub trait Workers: Sync {
    /// How many threads may run at once; at least 1.
    fn threads(&self) -> usize;

    /// Runs both, at the same time where a thread is free; returns when both have ended.
    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send));

    /// Whether the work should end early, since its result is not wanted any more. Once true, it stays true.
    fn is_stopped(&self) -> bool {
        false
    }

    /// To be asked between two pieces of work, each of some milliseconds at most.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] where the work should end early.
    fn check(&self) -> Result<()> {
        match self.is_stopped() {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
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

/// One of the threads that are lent: for a piece of work that has no use for several, and is stopped with the rest.
pub struct Single<'a>(pub &'a dyn Workers);

impl Workers for Single<'_> {
    fn threads(&self) -> usize {
        1
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        Alone.join(a, b);
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

/// Cuts `data` into chunks of `chunk` elements (the last may be shorter) and calls `f(index, chunk)`
/// for each, on as many threads as are free.
///
/// Which thread gets which chunk is open; a result that is a function of `index` and the chunk alone
/// is therefore the same at every thread count.
///
/// # Errors
/// Where the work is stopped: some chunks were not visited.
///
/// ```
/// use tonnage_cpu::workers::{Alone, for_each_chunk};
/// let mut data = vec![0u32; 10];
/// for_each_chunk(&Alone, &mut data, 4, &|index, chunk| chunk.fill(index as u32))?;
/// assert_eq!(data, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
pub fn for_each_chunk<T: Send>(
    workers: &dyn Workers,
    data: &mut [T],
    chunk: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<()> {
    let (len, chunk) = (data.len(), chunk.max(1));
    for_each_part(workers, data, len.div_ceil(chunk), &|i| (i * chunk).min(len), f)
}

/// Cuts `data` into `count` parts, of which part `i` goes from `start(i)` to `start(i + 1)`, and calls
/// `f(index, part)` for each, on as many threads as are free.
///
/// # Errors
/// Where the work is stopped: some parts were not visited.
///
/// ```
/// use tonnage_cpu::workers::{Alone, for_each_part};
/// let mut data = vec![0u32; 6];
/// for_each_part(&Alone, &mut data, 3, &|i| i * (i + 1) / 2, &|i, part| part.fill(i as u32))?;
/// assert_eq!(data, [0, 1, 1, 2, 2, 2]);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
pub fn for_each_part<T: Send>(
    workers: &dyn Workers,
    data: &mut [T],
    count: usize,
    start: &(dyn Fn(usize) -> usize + Sync),
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<()> {
    // Four pieces a thread: a thread that is held up leaves work for the others.
    let grain = match workers.threads() {
        0 | 1 => count,
        threads => count.div_ceil(4 * threads),
    };
    split(workers, data, 0..count, start, grain, f);
    workers.check()
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
            if workers.is_stopped() {
                return;
            }
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
