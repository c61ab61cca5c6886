//! Blocks of `bf16` as the matrix unit reads them: 32 lines by 32 steps of depth, with two steps side by side in a word.
//!
//! What is read from memory is read in its order: a block has a line of cache in each of 32 rows, which lie as far apart as
//! pages, and no machine sees a pattern in that.
//!
//! Decision: `docs/decisions/bf16-products-use-amx.md`.

use std::marker::PhantomData;
use std::ops::Range;

use tonnage_core::bf16;

use super::compute::Compute;
use super::kernel::amx::{BLOCK, Lines, SIDE, STEP};
use super::kernel::fetch;
use super::operand::{Direct, Narrow, Operand};
use crate::simd::{self, Isa};

/// How a block lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Lines of elements.
    Left,
    /// Two halves of 16 lines, and in each, for every two steps of depth, the lines' pairs.
    Right,
}

/// 16 lines of 16 pairs, or the other way round.
type Square = [[u32; 16]; 16];

/// Packs columns of a right operand over some depth: panels of [`SIDE`] one after the other, in each the blocks of its depth.
pub(super) fn pack_right<C: Compute, X: Operand<C>>(
    operand: &X,
    batch: usize,
    cols: Range<usize>,
    depth: Range<usize>,
    out: &mut [u16],
) {
    let steps = depth.len().div_ceil(STEP);
    let (mut panels, mut blocks) = (0, 0);
    if let Narrow::InMemory(from) = operand.narrow(batch)
        && from.line == 1
    {
        (panels, blocks) = (cols.len() / SIDE, depth.len() / STEP);
        let first = from.start as isize + cols.start as isize + depth.start as isize * from.depth;
        simd::level().run(Rows { from, first, panels, blocks, each: steps * BLOCK, out });
    }
    for (s, k) in depth.clone().step_by(STEP).enumerate() {
        let done = if s < blocks { panels } else { 0 };
        let depth = k..depth.end.min(k + STEP);
        let left = out.chunks_mut(steps * BLOCK).skip(done);
        for (col, panel) in (cols.start + done * SIDE..cols.end).step_by(SIDE).zip(left) {
            let lines = col..cols.end.min(col + SIDE);
            let packing = Packing { lines, depth: depth.clone(), form: Form::Right };
            pack::<C, X>(operand, batch, packing, &mut panel[s * BLOCK..][..BLOCK]);
        }
    }
}

/// Rows from those that are packed to those that are asked for.
const AHEAD: isize = 4;

/// Whole panels of columns that lie side by side: two rows at a time, all panels of them, in the order of memory.
struct Rows<'a> {
    from: Direct<'a, bf16>,
    first: isize,
    panels: usize,
    blocks: usize,
    each: usize,
    out: &'a mut [u16],
}

impl simd::SimdKernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Rows { from, first, panels, blocks, each, out } = self;
        let row =
            |k: usize| &from.data[(first + k as isize * from.depth) as usize..][..panels * SIDE];
        if panels == 0 {
            return;
        }
        for k in (0..blocks * STEP).step_by(2) {
            let (low, high) = (row(k), row(k + 1));
            let rows = low.as_chunks::<SIDE>().0.iter().zip(high.as_chunks::<SIDE>().0);
            // Of a panel a block, and in both halves of that a line.
            let at = k / STEP * BLOCK + k % STEP * 16;
            for ((low, high), panel) in rows.zip(out.chunks_mut(each)) {
                for row in [low, high] {
                    fetch(row.as_ptr().wrapping_offset(AHEAD * from.depth), SIDE);
                }
                for half in 0..2 {
                    let of = |i: usize| pair(low[half * 16 + i], high[half * 16 + i]);
                    let both: [u32; 16] = std::array::from_fn(of);
                    let to = &mut panel[at + half * BLOCK / 2..][..STEP];
                    to.copy_from_slice(bytemuck::cast_slice(&both));
                }
            }
        }
    }
}

/// A block: up to [`SIDE`] lines by [`STEP`] steps of depth, filled up with zeros.
struct Packing {
    lines: Range<usize>,
    depth: Range<usize>,
    form: Form,
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
fn pack<C: Compute, X: Operand<C>>(operand: &X, batch: usize, block: Packing, out: &mut [u16]) {
    struct Run<'a, C, X>(&'a X, usize, Packing, &'a mut [u16], PhantomData<C>);
    impl<C: Compute, X: Operand<C>> simd::SimdKernel for Run<'_, C, X> {
        type Output = ();

        #[inline(always)]
        fn run<I: Isa>(self) {
            self.2.squares::<C, X>(self.0, self.1, self.3);
        }
    }
    simd::level().run(Run(operand, batch, block, out, PhantomData::<C>));
}

/// Lines that lie a multiple of that many bytes apart share sets of the cache, too few for 16 of them.
const CROWDED: isize = 4096;

/// Up to [`SIDE`] lines of a left operand over some depth: where they lie, or packed if they are read more than a `few` times
/// and would crowd each other out.
pub(super) fn lines_of<C: Compute, X: Operand<C>>(
    operand: &X,
    batch: usize,
    lines: Range<usize>,
    depth: Range<usize>,
    few: bool,
    out: &mut [u16],
) -> Lines {
    let whole = lines.len() == SIDE && depth.len().is_multiple_of(STEP);
    match operand.narrow(batch) {
        Narrow::InMemory(from) if whole && from.depth == 1 => {
            if few || from.line * size_of::<bf16>() as isize % CROWDED != 0 {
                return lines_in_memory(&from, lines, depth);
            }
            copy_lines(&from, lines, depth, out);
        }
        _ => {
            for (k, block) in depth.clone().step_by(STEP).zip(out.chunks_exact_mut(BLOCK)) {
                let depth = k..depth.end.min(k + STEP);
                let packing = Packing { lines: lines.clone(), depth, form: Form::Left };
                pack::<C, X>(operand, batch, packing, block);
            }
        }
    }
    Lines::packed(out)
}

/// Whole lines where they lie.
fn lines_in_memory(from: &Direct<'_, bf16>, lines: Range<usize>, depth: Range<usize>) -> Lines {
    let size = size_of::<bf16>() as isize;
    // All others lie between these two.
    let [first, _] = [lines.start, lines.end - 1].map(|line| from.run(line, depth.clone()));
    let first = first.as_ptr().cast::<u16>();
    Lines { first, line: from.line * size, step: STEP as isize * size }
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
    for (pairs, k) in pairs.iter_mut().zip(depth.clone().step_by(2)) {
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
