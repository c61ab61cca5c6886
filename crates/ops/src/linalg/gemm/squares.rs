//! Blocks of `bf16` as the matrix unit reads them: 32 lines by 32 steps of depth, with two steps side by side in a word.
//!
//! Requests to the cache run ahead of the reading: a block touches a line of cache in each of 32 rows, which lie as far apart
//! as pages, and no machine sees a pattern in that.

use std::marker::PhantomData;
use std::ops::Range;

use tonnage_core::bf16;

use super::compute::Compute;
use super::kernel::amx::{BLOCK, SIDE, STEP};
use super::kernel::fetch;
use super::operand::{Direct, Narrow, Operand};
use crate::simd::{self, Isa};

/// How a block lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines of elements.
    Left,
    /// Two halves of 16 lines, and in each, for every two steps of depth, the lines' pairs.
    Right,
}

/// 16 lines of 16 pairs, or the other way round.
type Square = [[u32; 16]; 16];

/// A block: up to [`SIDE`] lines by [`STEP`] steps of depth, filled up with zeros.
pub(super) struct Packing {
    pub lines: Range<usize>,
    pub depth: Range<usize>,
    pub form: Form,
}

impl Packing {
    #[inline(always)]
    fn squares<C: Compute, X: Operand<C>>(self, operand: &X, batch: usize, out: &mut [u16]) {
        let Packing { lines, depth, form } = self;
        let narrow = operand.narrow(batch);
        let squares = bytemuck::cast_slice_mut::<u16, Square>(out);
        for (half, square) in (lines.start..).step_by(16).zip(squares) {
            let some = half.min(lines.end)..lines.end.min(half + 16);
            let lies = match &narrow {
                Narrow::InMemory(from) if from.line == 1 => {
                    by_depth(from, some, depth.clone(), square);
                    Form::Right
                }
                Narrow::InMemory(from) => {
                    by_line(from, some, depth.clone(), square);
                    Form::Left
                }
                _ => {
                    packed(operand, batch, some, depth.clone(), square);
                    Form::Right
                }
            };
            if form != lies {
                *square = turned(square);
            }
        }
    }
}

/// Packs a block with the vectors of the machine.
pub(super) fn pack<C: Compute, X: Operand<C>>(
    operand: &X,
    batch: usize,
    block: Packing,
    out: &mut [u16],
) {
    struct Run<'a, C, X>(&'a X, usize, Packing, &'a mut [u16], PhantomData<C>);
    impl<C: Compute, X: Operand<C>> simd::Kernel for Run<'_, C, X> {
        type Output = ();

        #[inline(always)]
        fn run<I: Isa>(self) {
            self.2.squares::<C, X>(self.0, self.1, self.3);
        }
    }
    simd::level().run(Run(operand, batch, block, out, PhantomData::<C>));
}

/// Packs up to [`SIDE`] lines over some depth: the blocks of a left operand, one after the other.
pub(super) fn pack_lines<C: Compute, X: Operand<C>>(
    operand: &X,
    batch: usize,
    lines: Range<usize>,
    depth: Range<usize>,
    out: &mut [u16],
) {
    let whole = lines.len() == SIDE && depth.len().is_multiple_of(STEP);
    match operand.narrow(batch) {
        Narrow::InMemory(from) if whole && from.depth == 1 => copy_lines(&from, lines, depth, out),
        _ => {
            for (k, block) in depth.clone().step_by(STEP).zip(out.chunks_exact_mut(BLOCK)) {
                let depth = k..depth.end.min(k + STEP);
                let packing = Packing { lines: lines.clone(), depth, form: Form::Left };
                pack::<C, X>(operand, batch, packing, block);
            }
        }
    }
}

/// Whole lines as they lie, each read to its end; those of the next blocks are asked for.
fn copy_lines(from: &Direct<'_, bf16>, lines: Range<usize>, depth: Range<usize>, out: &mut [u16]) {
    for (i, line) in lines.enumerate() {
        let run = from.run(line, depth.clone());
        let next = run.as_ptr().wrapping_offset(SIDE as isize * from.line);
        let (runs, _) = bytemuck::cast_slice::<bf16, u16>(run).as_chunks::<STEP>();
        for (s, (run, block)) in runs.iter().zip(out.chunks_exact_mut(BLOCK)).enumerate() {
            fetch(next.wrapping_add(s * STEP), STEP);
            block[i * STEP..][..STEP].copy_from_slice(run);
        }
    }
}

/// Rows and columns swapped.
#[inline(always)]
fn turned(from: &Square) -> Square {
    std::array::from_fn(|i| std::array::from_fn(|j| from[j][i]))
}

/// Both halves of a pair.
#[inline(always)]
fn pair(low: bf16, high: bf16) -> u32 {
    u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
}

/// Pairs of lines that lie side by side: two steps of depth are two runs.
#[inline(always)]
fn by_depth(from: &Direct<'_, bf16>, lines: Range<usize>, depth: Range<usize>, pairs: &mut Square) {
    if lines.len() < 16 || depth.len() < STEP {
        *pairs = [[0; 16]; 16];
    }
    if lines.is_empty() {
        return;
    }
    let run = |k: usize| {
        let at = from.start as isize + lines.start as isize + k as isize * from.depth;
        &from.data[at as usize..][..lines.len()]
    };
    let next = from
        .data
        .as_ptr()
        .wrapping_offset(from.start as isize + lines.start as isize + STEP as isize * from.depth);
    for (pairs, k) in pairs.iter_mut().zip(depth.clone().step_by(2)) {
        for k in [k, k + 1] {
            fetch(next.wrapping_offset(k as isize * from.depth), lines.len());
        }
        let low = run(k);
        let high = if k + 1 < depth.end { run(k + 1) } else { &[] };
        if let (Some(low), Some(high)) = (low.first_chunk::<16>(), high.first_chunk::<16>()) {
            // Read before anything is written, or the compiler makes no vectors of it.
            let (low, high) = (*low, *high);
            *pairs = std::array::from_fn(|i| pair(low[i], high[i]));
            continue;
        }
        let high = high.iter().chain(std::iter::repeat(&bf16::ZERO));
        pairs.iter_mut().zip(low.iter().zip(high)).for_each(|(to, (x, y))| *to = pair(*x, *y));
    }
}

/// Pairs along each line.
#[inline(always)]
fn by_line(from: &Direct<'_, bf16>, lines: Range<usize>, depth: Range<usize>, pairs: &mut Square) {
    if lines.len() < 16 || depth.len() < STEP || from.depth != 1 {
        *pairs = [[0; 16]; 16];
    }
    for (pairs, line) in pairs.iter_mut().zip(lines) {
        let at = from.start as isize + line as isize * from.line;
        if from.depth == 1 {
            let run = &from.data[(at + depth.start as isize) as usize..][..depth.len()];
            if let Some(run) = run.first_chunk::<STEP>() {
                // The low half lies first on machines with the unit.
                *pairs = bytemuck::cast(*run);
                continue;
            }
            let (whole, last) = run.as_chunks::<2>();
            pairs.iter_mut().zip(whole).for_each(|(to, [low, high])| *to = pair(*low, *high));
            if let [last] = last {
                pairs[whole.len()] = last.to_bits().into();
            }
            continue;
        }
        for (i, k) in depth.clone().enumerate() {
            let x = from.data[(at + k as isize * from.depth) as usize];
            pairs[i / 2] |= u32::from(x.to_bits()) << (i % 2 * 16);
        }
    }
}

/// Pairs of what is not in memory: its elements are exact in `f32`, where they have as many bits as before.
fn packed<C: Compute, X: Operand<C>>(
    operand: &X,
    batch: usize,
    lines: Range<usize>,
    depth: Range<usize>,
    pairs: &mut Square,
) {
    *pairs = [[0; 16]; 16];
    let mut wide = [C::ZERO; 16 * STEP];
    let wide = &mut wide[..16 * depth.len()];
    if lines.is_empty() {
        return;
    }
    operand.pack(batch, lines, depth, 16, wide);
    let bits = bytemuck::cast_slice::<C, u32>(wide);
    for (i, line) in bits.chunks_exact(16).enumerate() {
        for (pair, bits) in pairs[i / 2].iter_mut().zip(line) {
            *pair |= bits >> 16 << (i % 2 * 16);
        }
    }
}
