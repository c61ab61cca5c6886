//! Products of `bf16` in pairs, where the machine multiplies them so (`kernel/amx`): both operands are packed as they are,
//! at half the bytes of `f32`, and sums are kept in `f32`.
//!
//! The order in which an element is summed follows from the depth alone, as everywhere.

#![allow(unsafe_code, reason = "hands pointers into packed blocks and sums to the matrix unit")]

use std::ops::Range;

use tonnage_core::bf16;

use super::compute::{Compute, Output};
use super::epilogue::{Block, Epilogue, Position};
use super::kernel::amx::{BLOCK, SIDE, STEP, Unit};
use super::operand::{Direct, Narrow, Operand};
use super::run::Job;
use super::tiles::Part;

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
                for (q, panel) in b_space.chunks_exact_mut(steps * BLOCK).enumerate() {
                    let lines = first + q * SIDE..first + cols.min((q + 1) * SIDE);
                    if !lines.is_empty() {
                        pack(self.b, batch, lines, &run, Form::Right, panel);
                    }
                }
                for i in (0..part.rows).step_by(SIDE) {
                    let rows = SIDE.min(part.rows - i);
                    let lines = part.at.row + i..part.at.row + i + rows;
                    let strip = &mut a_space[..steps * BLOCK];
                    pack(self.a, batch, lines, &run, Form::Left, strip);
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

/// Packs up to [`SIDE`] lines along all of `depth`, filled up with zeros, as blocks one after the other.
fn pack<C: Compute, X: Operand<C>>(
    operand: &X,
    batch: usize,
    lines: Range<usize>,
    depth: &Range<usize>,
    form: Form,
    out: &mut [u16],
) {
    let narrow = operand.narrow(batch);
    for (k, block) in depth.clone().step_by(STEP).zip(out.chunks_exact_mut(BLOCK)) {
        let run = k..depth.end.min(k + STEP);
        let squares = bytemuck::cast_slice_mut::<u16, Square>(block);
        for (h, half) in (lines.start..lines.start + SIDE).step_by(16).enumerate() {
            let some = half.min(lines.end)..lines.end.min(half + 16);
            // Of lines of elements, each has both halves of its pairs side by side; else each half has its own lines.
            let mut first: Square = [[0; 16]; 16];
            match &narrow {
                Narrow::InMemory(from) if from.line == 1 => {
                    by_depth(from, some, run.clone(), &mut first);
                    if form == Form::Left {
                        first = turned(&first);
                    }
                }
                Narrow::InMemory(from) => {
                    by_line(from, some, run.clone(), &mut first);
                    if form == Form::Right {
                        first = turned(&first);
                    }
                }
                _ => {
                    packed(operand, batch, some, run.clone(), &mut first);
                    if form == Form::Left {
                        first = turned(&first);
                    }
                }
            }
            squares[h] = first;
        }
    }
}

/// Rows and columns swapped.
fn turned(from: &Square) -> Square {
    std::array::from_fn(|i| std::array::from_fn(|j| from[j][i]))
}

/// Pairs of lines that lie side by side: two steps of depth are two runs.
fn by_depth(from: &Direct<'_, bf16>, lines: Range<usize>, depth: Range<usize>, pairs: &mut Square) {
    if lines.is_empty() {
        return;
    }
    let run = |k: usize| {
        let at = from.start as isize + lines.start as isize + k as isize * from.depth;
        &from.data[at as usize..][..lines.len()]
    };
    for (pairs, k) in pairs.iter_mut().zip(depth.clone().step_by(2)) {
        let low = run(k);
        if k + 1 < depth.end {
            for ((pair, low), high) in pairs.iter_mut().zip(low).zip(run(k + 1)) {
                *pair = u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16;
            }
        } else {
            pairs.iter_mut().zip(low).for_each(|(pair, low)| *pair = low.to_bits().into());
        }
    }
}

/// Pairs along each line.
fn by_line(from: &Direct<'_, bf16>, lines: Range<usize>, depth: Range<usize>, pairs: &mut Square) {
    for (pairs, line) in pairs.iter_mut().zip(lines) {
        let at = from.start as isize + line as isize * from.line;
        if from.depth == 1 {
            let run = &from.data[(at + depth.start as isize) as usize..][..depth.len()];
            let (whole, last) = run.as_chunks::<2>();
            for (pair, [low, high]) in pairs.iter_mut().zip(whole) {
                *pair = u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16;
            }
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
