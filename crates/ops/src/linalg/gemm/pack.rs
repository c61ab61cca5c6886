//! Packing of strided matrices: the three ways memory can run, each with a loop that suits it.

#![allow(unsafe_code, reason = "calls loops that are compiled for wider vectors")]

use super::compute::{Compute, Reads};
#[cfg(target_arch = "x86_64")]
use super::kernel::Level;
use super::kernel::fetch;
use super::kernel::turn::{LINES, Turn};
use super::operand::pack_with;

/// A block of a strided matrix. The operand has checked that it lies in `data`.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a, T> {
    /// What the strides walk over.
    pub data: &'a [T],
    /// The block's first element.
    pub start: isize,
    /// From one line to the next.
    pub line: isize,
    /// From one step of depth to the next.
    pub depth: isize,
}

impl<T> Source<'_, T> {
    #[inline(always)]
    fn run(&self, at: isize, len: usize) -> &[T] {
        &self.data[at as usize..][..len]
    }

    /// Asks the cache for elements that are read later. Any position will do.
    #[inline(always)]
    fn fetch(&self, at: isize, len: usize) {
        fetch(self.data.as_ptr().wrapping_offset(at), len);
    }
}

/// Fills `out` as [`Operand::pack`](super::Operand::pack) says.
pub fn strided<C: Compute, T: Reads<C>>(
    source: &Source<'_, T>,
    lines: usize,
    depth: usize,
    width: usize,
    out: &mut [C],
) {
    #[cfg(target_arch = "x86_64")]
    {
        /// The same loops, compiled for wider vectors.
        #[target_feature(enable = "avx2,fma")]
        fn wide<C: Compute, T: Reads<C>>(
            source: &Source<'_, T>,
            lines: usize,
            depth: usize,
            width: usize,
            out: &mut [C],
        ) {
            plain(source, lines, depth, width, out);
        }
        if Level::Avx2.is_available() {
            // SAFETY: AVX2 is there.
            return unsafe { wide(source, lines, depth, width, out) };
        }
    }
    plain(source, lines, depth, width, out);
}

#[inline(always)]
fn plain<C: Compute, T: Reads<C>>(
    source: &Source<'_, T>,
    lines: usize,
    depth: usize,
    width: usize,
    out: &mut [C],
) {
    if lines == 0 || depth == 0 {
        return;
    }
    /// Elements that are read in turn with a request for others.
    const RUN: usize = 128;
    /// Lines from one to the other.
    const AHEAD: isize = 4;
    if source.line == 1 {
        match width {
            48 => side_by_side::<C, T, 48>(source, lines, depth, out),
            32 => side_by_side::<C, T, 32>(source, lines, depth, out),
            24 => side_by_side::<C, T, 24>(source, lines, depth, out),
            16 => side_by_side::<C, T, 16>(source, lines, depth, out),
            14 => side_by_side::<C, T, 14>(source, lines, depth, out),
            9 => side_by_side::<C, T, 9>(source, lines, depth, out),
            _ => by_runs(source, 0, lines, depth, width, out),
        }
    } else if source.depth == 1 && width == 1 {
        for (i, line) in out.chunks_exact_mut(depth).take(lines).enumerate() {
            let at = source.start + i as isize * source.line;
            for (k, to) in (0..).step_by(RUN).zip(line.chunks_mut(RUN)) {
                source.fetch(at + k + AHEAD * source.line, to.len());
                let run = source.run(at + k, to.len());
                to.iter_mut().zip(run).for_each(|(to, from)| *to = from.read());
            }
        }
    } else if source.depth == 1 {
        transposed(source, lines, depth, width, out);
    } else {
        pack_with(lines, depth, width, out, |line, k| {
            let at = source.start + line as isize * source.line + k as isize * source.depth;
            source.data[at as usize].read()
        });
    }
}

/// Lines lie side by side: whole panels of a width that the compiler knows. Some steps of depth at a time: as many
/// streams of memory are read, and each panel is written in runs. (A step at a time would write to all panels in
/// turn, which share a set of the cache where their length is a power of two.)
#[inline(always)]
fn side_by_side<C: Compute, T: Reads<C>, const W: usize>(
    source: &Source<'_, T>,
    lines: usize,
    depth: usize,
    out: &mut [C],
) {
    const RUN: usize = 8;
    let whole = lines / W;
    // Elements that need no widening are copied: the compiler would take them one by one.
    let computed = T::as_computed(source.data);
    for first in (0..depth).step_by(RUN) {
        let steps = RUN.min(depth - first);
        for p in 0..whole {
            let to = &mut out[(p * depth + first) * W..][..steps * W];
            for (k, to) in to.as_chunks_mut::<W>().0.iter_mut().enumerate() {
                let at = source.start + (p * W) as isize + (first + k) as isize * source.depth;
                source.fetch(at + RUN as isize * source.depth, W);
                if let Some(data) = computed {
                    to.copy_from_slice(&data[at as usize..][..W]);
                    continue;
                }
                for (to, from) in to.iter_mut().zip(source.run(at, W)) {
                    *to = from.read();
                }
            }
        }
    }
    by_runs(source, whole * W, lines, depth, W, &mut out[whole * W * depth..]);
}

/// Lines lie side by side, panels of any width, from line `first` on.
#[inline(always)]
fn by_runs<C: Compute, T: Reads<C>>(
    source: &Source<'_, T>,
    first: usize,
    lines: usize,
    depth: usize,
    width: usize,
    out: &mut [C],
) {
    for (first, panel) in (first..lines).step_by(width).zip(out.chunks_exact_mut(width * depth)) {
        let count = width.min(lines - first);
        for (k, to) in panel.chunks_exact_mut(width).enumerate() {
            let at = source.start + first as isize + k as isize * source.depth;
            for (to, from) in to.iter_mut().zip(source.run(at, count)) {
                *to = from.read();
            }
            to[count..].fill(C::ZERO);
        }
    }
}

/// Depth runs along memory: lines are read in runs (widened on the way, where they have to be), some at a time, and
/// transposed into their panel.
#[inline(always)]
fn transposed<C: Compute, T: Reads<C>>(
    source: &Source<'_, T>,
    lines: usize,
    depth: usize,
    width: usize,
    out: &mut [C],
) {
    /// Steps of depth in a run: the widened ones and what they become stay in L1.
    const RUN: usize = 64;
    let computed = T::as_computed(source.data);
    for (first, panel) in (0..lines).step_by(width).zip(out.chunks_exact_mut(width * depth)) {
        for group in (0..width).step_by(LINES) {
            let count = lines.saturating_sub(first + group).min(width - group).min(LINES);
            let keep = (width - group).min(LINES);
            let at = |i: usize| source.start + (first + group + i) as isize * source.line;
            if let Some(data) = computed.filter(|_| count > 0) {
                let all = Source { data, start: 0, line: 0, depth: 1 };
                let line = |i: usize| if i < count { all.run(at(i), depth) } else { &[] };
                let lines = std::array::from_fn(line);
                let ahead = 4 * source.line;
                C::turn(&Turn { lines, count, keep, width, ahead }, &mut panel[group..]);
                continue;
            }
            for k in (0..depth).step_by(RUN) {
                let len = RUN.min(depth - k);
                let mut widened = [[C::ZERO; RUN]; LINES];
                for (i, line) in widened.iter_mut().enumerate().take(count) {
                    let run = source.run(at(i) + k as isize, len);
                    line.iter_mut().zip(run).for_each(|(to, from)| *to = from.read());
                }
                let lines = std::array::from_fn(|i| &widened[i][..len]);
                let turn = Turn { lines, count, keep, width, ahead: 0 };
                C::turn(&turn, &mut panel[k * width + group..]);
            }
        }
    }
}
