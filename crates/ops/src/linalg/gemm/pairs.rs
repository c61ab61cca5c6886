//! Products of `bf16` in pairs, where the machine multiplies them so (`kernel/amx`): both operands are packed as they are,
//! at half the bytes of `f32`, and sums are kept in `f32`.
//!
//! The order in which an element is summed follows from the depth alone, as everywhere.

#![allow(unsafe_code, reason = "hands pointers into packed blocks and sums to the matrix unit")]

use std::marker::PhantomData;
use std::ops::Range;

use tonnage_core::bf16;

use super::compute::{Compute, Output};
use super::epilogue::{Block, Epilogue, Position};
use super::kernel::amx::{BLOCK, SIDE, STEP, Unit};
use super::operand::{Direct, Narrow, Operand};
use super::run::Job;
use super::tiles::Part;
use crate::simd::{self, Isa};

/// Depth of a block: what is packed of 32 lines fits L1.
pub(super) const DEEP: usize = 512;
/// Columns of the right operand that are packed at once: a part of L2.
pub(super) const WIDE: usize = 512;

/// `f32`-sized elements of packing space, for the left and for the right operand.
pub(super) fn space(cols: usize, depth: usize) -> [usize; 2] {
    let deep = depth.min(DEEP).next_multiple_of(STEP);
    [SIDE * deep / 2, cols.min(WIDE).next_multiple_of(SIDE) * deep / 2]
}

impl<A, B, O, E> Job<'_, A, B, O, E>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: Epilogue<O::Compute>,
{
    /// # Safety
    /// As for `part`, with sums of `f32`; both operands hold `bf16`, and depth is not 0.
    pub(super) unsafe fn pairs(&self, part: &Part<O::Compute>, space: &mut [O::Compute]) {
        let Some(unit) = Unit::begin() else { return };
        let (depth, batch) = (self.size.depth, part.at.batch);
        let [of_a, of_b] = self::space(part.cols, depth);
        let (a_space, b_space) = space.split_at_mut(of_a);
        let a_space = bytemuck::cast_slice_mut::<O::Compute, u16>(a_space);
        let b_space = bytemuck::cast_slice_mut::<O::Compute, u16>(&mut b_space[..of_b]);
        let row = part.sums_row * size_of::<f32>() as isize;
        for j in (0..part.cols).step_by(WIDE) {
            let cols = WIDE.min(part.cols - j);
            for k in (0..depth).step_by(DEEP) {
                let run = k..depth.min(k + DEEP);
                let steps = run.len().div_ceil(STEP);
                let first = part.at.col + j;
                // All columns of some steps of depth, then the next steps: in the order of memory where rows are.
                for (s, depth) in run.clone().step_by(STEP).enumerate() {
                    let depth = depth..run.end.min(depth + STEP);
                    let panels = b_space[s * BLOCK..].chunks_mut(steps * BLOCK);
                    for (q, panel) in (0..cols).step_by(SIDE).zip(panels) {
                        let lines = first + q..first + cols.min(q + SIDE);
                        let block = Packing { lines, depth: depth.clone(), form: Form::Right };
                        pack::<O::Compute, B>(self.b, batch, block, &mut panel[..BLOCK]);
                    }
                }
                for i in (0..part.rows).step_by(SIDE) {
                    let rows = SIDE.min(part.rows - i);
                    let lines = part.at.row + i..part.at.row + i + rows;
                    let strip = &mut a_space[..steps * BLOCK];
                    for (s, depth) in run.clone().step_by(STEP).enumerate() {
                        let depth = depth..run.end.min(depth + STEP);
                        let block = Packing { lines: lines.clone(), depth, form: Form::Left };
                        let out = &mut strip[s * BLOCK..][..BLOCK];
                        pack::<O::Compute, A>(self.a, batch, block, out);
                    }
                    let sums = part.sums.wrapping_offset(i as isize * part.sums_row + j as isize);
                    let sums = sums.cast::<f32>();
                    let add = part.add || k > 0;
                    for (q, panel) in b_space.chunks_exact(steps * BLOCK).enumerate() {
                        let Some(width) = cols.checked_sub(q * SIDE).filter(|n| *n > 0) else {
                            break;
                        };
                        let c = sums.wrapping_add(q * SIDE);
                        let (a, b) = (strip.as_ptr(), panel.as_ptr());
                        let size = (rows, width.min(SIDE));
                        // SAFETY: the panels have that many blocks; the sums are the caller's.
                        unsafe { tile(&unit, a, b, steps, c, row, size, add) };
                    }
                    if run.end == depth {
                        let at = Position { row: part.at.row + i, col: first, batch };
                        let sums = sums.cast::<O::Compute>();
                        // SAFETY: rows of the part, whose sums nobody else holds.
                        let mut block = unsafe { Block::new(at, rows, cols, sums, part.sums_row) };
                        self.epilogue.finish(&mut block);
                    }
                }
            }
        }
    }
}

/// One call of the unit; at the edges by way of a whole block of sums.
///
/// # Safety
/// As `Unit::multiply`, with as many rows and columns of sums as `size` says.
#[allow(clippy::too_many_arguments, reason = "those of `Unit::multiply`, and the size at an edge")]
unsafe fn tile(
    unit: &Unit,
    a: *const u16,
    b: *const u16,
    steps: usize,
    c: *mut f32,
    row: isize,
    size: (usize, usize),
    add: bool,
) {
    if size == (SIDE, SIDE) {
        // SAFETY: the caller's promise.
        return unsafe { unit.multiply(a, b, steps, c, row as usize, add) };
    }
    #[repr(align(64))]
    struct Whole([[f32; SIDE]; SIDE]);
    let mut whole = Whole([[0.0; SIDE]; SIDE]);
    let at = |i: usize| c.wrapping_byte_offset(i as isize * row);
    // SAFETY: the caller's promise: row `i` has that many columns, which nobody else holds.
    let rows = |i: usize| unsafe { std::slice::from_raw_parts_mut(at(i), size.1) };
    if add {
        for (i, line) in whole.0.iter_mut().enumerate().take(size.0) {
            line[..size.1].copy_from_slice(rows(i));
        }
    }
    let sums = whole.0.as_mut_ptr().cast::<f32>();
    // SAFETY: the block of sums is whole.
    unsafe { unit.multiply(a, b, steps, sums, size_of::<[f32; SIDE]>(), add) };
    for (i, line) in whole.0.iter().enumerate().take(size.0) {
        rows(i).copy_from_slice(&line[..size.1]);
    }
}

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
    impl<C: Compute, X: Operand<C>> simd::Kernel for Run<'_, C, X> {
        type Output = ();

        #[inline(always)]
        fn run<I: Isa>(self) {
            self.2.squares::<C, X>(self.0, self.1, self.3);
        }
    }
    simd::level().run(Run(operand, batch, block, out, PhantomData::<C>));
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
