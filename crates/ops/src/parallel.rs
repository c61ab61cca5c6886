//! How kernels share their outputs among threads: how much to a piece, and two outputs cut alike.

use tonnage_core::Workers;

/// Elements that are worth handing to another thread.
pub const GRAIN: usize = 16 * 1024;

/// How many rows of that length make a piece.
pub fn rows_at_once(row: usize) -> usize {
    (GRAIN / row.max(1)).max(1)
}

/// Two slices to write that are cut in step.
pub struct Pair<'a, A, B> {
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
/// as [`tonnage_core::workers::for_each_chunk`] does for one slice. Both have the same number of them.
pub fn for_each_pair<A: Send, B: Send>(workers: &dyn Workers, pair: Pair<A, B>, f: OnPair<A, B>) {
    let count = pair.a.len().div_ceil(pair.chunk_a.max(1));
    let grain = if workers.threads() < 2 { count } else { count.div_ceil(4 * workers.threads()) };
    split(workers, pair, 0, grain.max(1), f);
}

fn split<A: Send, B: Send>(
    workers: &dyn Workers,
    pair: Pair<A, B>,
    first: usize,
    grain: usize,
    f: OnPair<A, B>,
) {
    let Pair { a, chunk_a, b, chunk_b } = pair;
    let count = a.len().div_ceil(chunk_a.max(1));
    if count <= grain {
        let chunks = a.chunks_mut(chunk_a.max(1)).zip(b.chunks_mut(chunk_b.max(1)));
        chunks.enumerate().for_each(|(i, (a, b))| f(first + i, a, b));
        return;
    }
    let half = count / 2;
    let (a, more_a) = a.split_at_mut(half * chunk_a);
    let (b, more_b) = b.split_at_mut(half * chunk_b);
    workers.join(
        &mut || split(workers, Pair { a, chunk_a, b, chunk_b }, first, grain, f),
        &mut || {
            let rest = Pair { a: more_a, chunk_a, b: more_b, chunk_b };
            split(workers, rest, first + half, grain, f);
        },
    );
}
