//! A program that stores, over a whole domain: cut into pieces for the threads, and these into tiles.
//!
//! Decision: `docs/decisions/streaming-stores.md`.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::tile::Form;

use super::ready::{MOST_STORES, Ready, TileSlot};
use super::transposed::TransposedBlocks;
use crate::workers::Workers;
use tonnage_simd::prefetch;
use tonnage_simd::stream::streaming;

/// Elements under which a piece is not worth another thread, of a program that does little with each.
const GRAIN: usize = 32 * 1024;

/// What little is, in floating-point operations.
const LITTLE: u64 = 4;

/// Elements of a piece at most, also for one thread: before each one the work may be stopped. Some milliseconds.
const LONGEST: usize = 1 << 20;

/// The outputs of a piece.
pub(super) type Outputs<'o> = SmallVec<[&'o mut [u8]; MOST_STORES]>;

pub fn run(
    ready: &Ready,
    domain: &[usize],
    outputs: &mut [&mut [u8]],
    workers: &dyn Workers,
) -> Result<()> {
    if let Some(blocks) = TransposedBlocks::of(ready, domain) {
        blocks.run(ready, outputs.iter_mut().map(|o| &mut **o).collect(), workers);
        return workers.check();
    }
    run_part(ready, 0, domain.iter().product(), outputs, workers)
}

/// Some elements of the domain.
pub fn run_part(
    ready: &Ready,
    first: usize,
    count: usize,
    outputs: &mut [&mut [u8]],
    workers: &dyn Workers,
) -> Result<()> {
    let threads = workers.threads().max(1);
    let grain = worth(ready).max(count.div_ceil(4 * threads)).min(LONGEST);
    let outputs = outputs.iter_mut().map(|o| &mut **o).collect();
    split(ready, first, count, outputs, grain, workers);
    workers.check()
}

/// Elements under which a piece is not worth another thread.
fn worth(ready: &Ready) -> usize {
    let flops: u64 = ready.program.code.iter().map(|instr| instr.prim.flops()).sum();
    GRAIN / (flops / LITTLE).max(1) as usize
}

fn split(
    ready: &Ready,
    first: usize,
    count: usize,
    outputs: Outputs,
    grain: usize,
    workers: &dyn Workers,
) {
    if workers.is_stopped() {
        return;
    }
    if count <= grain {
        return piece(ready, first, count, outputs);
    }
    // Whole tiles, so that bits are cut at whole bytes and tiles fall as they would on one thread.
    let half = (count / 2).next_multiple_of(ready.tile);
    if half >= count {
        return piece(ready, first, count, outputs);
    }
    in_two(
        ready,
        outputs,
        half,
        workers,
        &|outputs| split(ready, first, half, outputs, grain, workers),
        &|outputs| split(ready, first + half, count - half, outputs, grain, workers),
    );
}

/// Cuts outputs behind a number of elements, and has both parts made at once where a thread is free.
pub(super) fn in_two(
    ready: &Ready,
    outputs: Outputs,
    elements: usize,
    workers: &dyn Workers,
    first: &(dyn Fn(Outputs) + Sync),
    second: &(dyn Fn(Outputs) + Sync),
) {
    let (mut left, mut right) = (Outputs::new(), Outputs::new());
    for (out, (_, form)) in outputs.into_iter().zip(&ready.program.stores) {
        let (l, r) = out.split_at_mut(bytes(*form, elements).min(out.len()));
        left.push(l);
        right.push(r);
    }
    let (mut left, mut right) = (Some(left), Some(right));
    workers.join(&mut || left.take().into_iter().for_each(first), &mut || {
        right.take().into_iter().for_each(second);
    });
}

pub(super) fn bytes(form: Form, elements: usize) -> usize {
    match form {
        Form::Elements(dtype) => elements * dtype.size(),
        Form::Bits => elements.div_ceil(8),
    }
}

fn piece(ready: &Ready, first: usize, count: usize, outputs: Outputs) {
    match ready.slots {
        0 => tiles::<0>(ready, first, count, outputs),
        1..=2 => tiles::<2>(ready, first, count, outputs),
        3..=6 => tiles::<6>(ready, first, count, outputs),
        7..=12 => tiles::<12>(ready, first, count, outputs),
        _ => tiles::<{ super::ready::MOST_SLOTS }>(ready, first, count, outputs),
    }
}

fn tiles<const SLOTS: usize>(ready: &Ready, first: usize, count: usize, outputs: Outputs) {
    let mut slots = [TileSlot::EMPTY; SLOTS];
    if !ready.far {
        return each_tile(ready, count, outputs, |done, len, mut parts| {
            ready.eval(first + done, len, &mut parts, &mut slots);
        });
    }
    let mut made = [TileSlot::EMPTY; MOST_STORES];
    streaming(|stream| {
        each_tile(ready, count, outputs, |done, len, parts| {
            let beside = made.iter_mut().zip(&parts);
            let mut values: Outputs =
                beside.map(|(slot, part)| &mut slot.bytes_mut()[..part.len()]).collect();
            ready.eval(first + done, len, &mut values, &mut slots);
            for (to, from) in parts.into_iter().zip(values) {
                stream.copy(to, from);
            }
        });
    });
}

/// Calls `f` with the start and length of each tile and its part of the outputs.
pub(super) fn each_tile<'o>(
    ready: &Ready,
    count: usize,
    mut outputs: Outputs<'o>,
    mut f: impl FnMut(usize, usize, Outputs<'o>),
) {
    let mut done = 0;
    while done < count {
        let len = ready.tile.min(count - done);
        let mut parts = Outputs::new();
        for (out, (_, form)) in outputs.iter_mut().zip(&ready.program.stores) {
            let whole = std::mem::take(out);
            let (part, rest) = whole.split_at_mut(bytes(*form, len).min(whole.len()));
            parts.push(part);
            if ready.ahead && !ready.far {
                prefetch::to_write(&rest[..bytes(*form, len).min(rest.len())]);
            }
            *out = rest;
        }
        f(done, len, parts);
        done += len;
    }
}
