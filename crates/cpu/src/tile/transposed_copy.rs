//! Copies of what lies in a file in another order than it is wanted in: in the order of the file, each element to its place.
//!
//! Some runs that end up beside each other are read, and then written a cache line at a time. Threads share what
//! they write, where the runs go along the first axis of it.

use bytemuck::{Pod, cast_slice_mut};
use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Elements, Generator};
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_ops::tile::stored::{RUN, run};

use super::source::{Read, TileSource};
use super::stored::{SPAN, check};
use crate::workers::{Workers, for_each_chunk};

/// Runs that are read before they are written side by side: of four-byte elements, a cache line.
const RUNS: usize = 16;

/// How the elements of a file lie, and where they go.
struct TransposedFile<'a> {
    from: &'a dyn Elements,
    layout: &'a Layout,
    /// From one element to the next along each axis of the result.
    steps: SmallVec<[usize; 4]>,
    /// The axis along which they lie side by side in the file.
    along: usize,
    /// The axis along which they lie side by side in the result.
    last: usize,
    /// The others.
    others: SmallVec<[usize; 4]>,
}

/// Copies what a program reads, where that is all that it does and the file has another order. `false` otherwise, and where it would
/// be no quicker.
pub fn transposed_copy(
    program: &TileProgram,
    domain: &[usize],
    sources: &[TileSource],
    outputs: &mut [&mut [u8]],
    workers: &dyn Workers,
) -> Result<bool> {
    let copies = program.code.is_empty()
        && program.close == Close::Store
        && matches!((program.loads.as_slice(), program.stores.as_slice()),
            ([load @ Form::Elements(_)], [(0, store)]) if load == store);
    let (true, [source], [out]) = (copies, sources, outputs) else { return Ok(false) };
    let Read::Generator(Generator::Stored { elements, dtype }) = source.read else {
        return Ok(false);
    };
    let layout = &source.layout;
    if elements.0.mapped().is_some() || out.is_empty() || run(layout) >= RUN {
        return Ok(false);
    }
    let along = (0..domain.len()).find(|i| layout.strides[*i] == 1 && domain[*i] >= RUN);
    let last = (0..domain.len()).rfind(|i| domain[*i] > 1);
    let (Some(along), Some(last)) = (along, last) else { return Ok(false) };
    if along == last {
        return Ok(false);
    }
    let mut steps: SmallVec<[usize; 4]> = SmallVec::from_elem(1, domain.len());
    for i in (0..domain.len().saturating_sub(1)).rev() {
        steps[i] = steps[i + 1] * domain[i + 1];
    }
    let mut others: SmallVec<[usize; 4]> =
        (0..domain.len()).filter(|i| *i != along && *i != last).collect();
    others.sort_by_key(|i| std::cmp::Reverse(layout.strides[*i].unsigned_abs()));
    let transposed = TransposedFile { from: &*elements.0, layout, steps, along, last, others };
    match dtype.size() {
        8 => transposed.copy::<u64>(cast_slice_mut(out), workers),
        4 => transposed.copy::<u32>(cast_slice_mut(out), workers),
        2 => transposed.copy::<u16>(cast_slice_mut(out), workers),
        _ => transposed.copy::<u8>(cast_slice_mut(out), workers),
    }?;
    check(sources)?;
    Ok(true)
}

impl TransposedFile<'_> {
    fn copy<T: Pod + Send>(&self, out: &mut [T], workers: &dyn Workers) -> Result<()> {
        let (step, all) = (self.steps[self.along], self.layout.sizes[self.along]);
        let at_once = SPAN / size_of::<T>();
        // What the runs go along is cut, and with it the result where that is its first axis.
        if step * all == out.len() {
            return for_each_chunk(workers, out, at_once * step, &|i, part| {
                self.part((i * at_once, part.len() / step), part);
            });
        }
        for first in (0..all).step_by(at_once) {
            workers.check()?;
            self.part((first, at_once.min(all - first)), &mut out[first * step..]);
        }
        Ok(())
    }

    /// `count` elements of each run, from `first` on; `out` begins with the first of them.
    fn part<T: Pod>(&self, (first, count): (usize, usize), out: &mut [T]) {
        let Layout { sizes, strides, offset } = self.layout;
        let runs: usize = self.others.iter().map(|i| sizes[*i]).product();
        let mut space = [0u64; RUNS * SPAN / size_of::<u64>()];
        let buffer: &mut [T] = &mut cast_slice_mut(&mut space)[..RUNS * count];
        for mut number in 0..runs {
            let (mut from, mut to) = ((offset + first) as isize, 0);
            for i in self.others.iter().rev() {
                let index = number % sizes[*i];
                number /= sizes[*i];
                from += index as isize * strides[*i];
                to += index * self.steps[*i];
            }
            for beside in (0..sizes[self.last]).step_by(RUNS) {
                let width = RUNS.min(sizes[self.last] - beside);
                for (j, run) in buffer.chunks_exact_mut(count).take(width).enumerate() {
                    let at = from + (beside + j) as isize * strides[self.last];
                    self.from.read(at as u64, cast_slice_mut(run));
                }
                for i in 0..count {
                    let to = &mut out[to + i * self.steps[self.along] + beside..][..width];
                    for (to, run) in to.iter_mut().zip(buffer.chunks_exact(count)) {
                        *to = run[i];
                    }
                }
            }
        }
    }
}
