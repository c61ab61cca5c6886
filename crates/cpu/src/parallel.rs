//! How kernels share their outputs and scratch among threads: how much to a piece, two outputs cut alike, a slot for each
//! thread.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use tonnage_core::{DType, Result};

use crate::workers::Workers;

/// Elements that are worth handing to another thread.
pub const GRAIN: usize = 16 * 1024;

/// How many rows of that length make a piece.
pub fn rows_at_once(row: usize) -> usize {
    (GRAIN / row.max(1)).max(1)
}

/// Elements that one loop goes over between two looks at whether to stop: at most some milliseconds of scalar code.
const STRIDE: usize = 1 << 16;

/// The ranges that make up `range` in order, for a loop that goes over many elements by itself, `weight` of them at each
/// position. There is a look before each but the first, for which whoever handed out the work has just looked: a short loop
/// pays nothing. It ends early where the work is stopped: what the loop has made is dropped then, by
/// [`Workers::check`], which a caller asks behind the loop and which
/// [`for_each_chunk`](crate::workers::for_each_chunk) and its like ask behind theirs.
pub fn strides(
    workers: &dyn Workers,
    range: Range<usize>,
    weight: usize,
) -> impl Iterator<Item = Range<usize>> {
    let (end, stride) = (range.end, (STRIDE / weight.max(1)).max(1));
    let first = range.start;
    let starts = range.step_by(stride);
    let starts = starts.take_while(move |start| *start == first || !workers.is_stopped());
    starts.map(move |start| start..end.min(start + stride))
}

/// Two slices to write that are cut in step.
pub struct ChunkedPair<'a, A, B> {
    /// One of them.
    pub a: &'a mut [A],
    /// Elements of `a` to a chunk.
    pub chunk_a: usize,
    /// The other.
    pub b: &'a mut [B],
    /// Elements of `b` to a chunk.
    pub chunk_b: usize,
}

/// What is done with the chunks of a number.
pub type OnPair<'f, A, B> = &'f (dyn Fn(usize, &mut [A], &mut [B]) + Sync);

/// Calls `f(index, chunk of a, chunk of b)` for each pair of chunks, on as many threads as are free;
/// as [`crate::workers::for_each_chunk`] does for one slice. Both have the same number of them.
///
/// # Errors
/// Where the work is stopped: some pairs were not visited.
pub fn for_each_pair<A: Send, B: Send>(
    workers: &dyn Workers,
    pair: ChunkedPair<A, B>,
    f: OnPair<A, B>,
) -> Result<()> {
    let count = pair.a.len().div_ceil(pair.chunk_a.max(1));
    let grain = if workers.threads() < 2 { count } else { count.div_ceil(4 * workers.threads()) };
    split(workers, pair, 0, grain.max(1), f);
    workers.check()
}

fn split<A: Send, B: Send>(
    workers: &dyn Workers,
    pair: ChunkedPair<A, B>,
    first: usize,
    grain: usize,
    f: OnPair<A, B>,
) {
    let ChunkedPair { a, chunk_a, b, chunk_b } = pair;
    let count = a.len().div_ceil(chunk_a.max(1));
    if count <= grain {
        let chunks = a.chunks_mut(chunk_a.max(1)).zip(b.chunks_mut(chunk_b.max(1)));
        let chunks = chunks.enumerate().take_while(|_| !workers.is_stopped());
        return chunks.for_each(|(i, (a, b))| f(first + i, a, b));
    }
    let half = count / 2;
    let (a, more_a) = a.split_at_mut(half * chunk_a);
    let (b, more_b) = b.split_at_mut(half * chunk_b);
    workers.join(
        &mut || split(workers, ChunkedPair { a, chunk_a, b, chunk_b }, first, grain, f),
        &mut || {
            let rest = ChunkedPair { a: more_a, chunk_a, b: more_b, chunk_b };
            split(workers, rest, first + half, grain, f);
        },
    );
}

/// Whether items that each are one thread's keep all threads at work: as many for each, or so many that the rest does not show.
pub fn is_even(items: usize, threads: usize) -> bool {
    /// Items of each thread beside which one more or less does not show.
    const MANY: usize = 4;
    items.is_multiple_of(threads.max(1)) || items >= MANY * threads
}

/// Calls `f(item, slot)` for each item, on as many threads as are free; each has a slot of scratch of its own, of which
/// `scratch` holds at least one. Items are handed out one by one, so that they may be of any weight.
///
/// # Errors
/// The first that `f` gives, or that the work is stopped; a thread that got one takes no more items.
pub fn for_each_item<T: Send>(
    workers: &dyn Workers,
    items: impl Iterator<Item = T> + Send,
    scratch: &mut [u8],
    slot: usize,
    f: &(dyn Fn(T, &mut [u8]) -> Result<()> + Sync),
) -> Result<()> {
    let slots = scratch.len().checked_div(slot).unwrap_or(workers.threads());
    let (items, failed) = (Mutex::new(items), Mutex::new(Ok(())));
    let work = |slot: &mut [u8]| {
        loop {
            let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item else { return };
            if let Err(error) = workers.check().and_then(|()| f(item, slot)) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
                return;
            }
        }
    };
    each_slot(workers, scratch, slot, slots.min(workers.threads()).max(1), &work);
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn each_slot(
    workers: &dyn Workers,
    scratch: &mut [u8],
    slot: usize,
    count: usize,
    work: &(dyn Fn(&mut [u8]) + Sync),
) {
    if count == 1 {
        return work(scratch);
    }
    let half = count / 2;
    let (left, right) = scratch.split_at_mut(half * slot);
    workers.join(&mut || each_slot(workers, left, slot, half, work), &mut || {
        each_slot(workers, right, slot, count - half, work);
    });
}

/// Elements cut off the front of scratch that starts at a cache line; what is left does so too.
pub fn cut<'a, C: Pod>(scratch: &mut &'a mut [u8], count: usize) -> &'a mut [C] {
    let bytes = cut_bytes::<C>(count).min(scratch.len());
    let (front, rest) = std::mem::take(scratch).split_at_mut(bytes);
    *scratch = rest;
    &mut bytemuck::pod_align_to_mut(front).1[..count]
}

/// The same of a dtype.
pub fn cut_bytes_of(count: usize, dtype: DType) -> usize {
    count.saturating_mul(dtype.size()).next_multiple_of(64)
}

/// How many bytes [`cut`] takes.
pub fn cut_bytes<C>(count: usize) -> usize {
    (count * size_of::<C>()).next_multiple_of(64)
}
