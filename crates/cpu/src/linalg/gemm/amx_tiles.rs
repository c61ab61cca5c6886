//! Blocks of `bf16` as AMX reads them: 32 rows or columns by 32 steps of K, with two steps side by side in a word.
//!
//! What is read from memory is read in its order: a block has a cache line in each of 32 rows, which lie as far apart as
//! pages, and no machine sees a pattern in that.
//!
//! Decision: `docs/decisions/bf16-products-use-amx.md`.

use std::ops::Range;

use tonnage_core::bf16;
use tonnage_simd::product::amx::{AmxRows, BLOCK, SIDE, STEP};
use tonnage_simd::product::{Compute, fetch};
use tonnage_simd::{Isa, SimdKernel, level};

use super::operand::{Bf16Source, DirectMatrix, GemmOperand};

/// How a block lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AmxLayout {
    /// Rows of elements.
    Left,
    /// Two halves of 16 columns, and in each, for every two steps of K, the columns' pairs (VNNI).
    Right,
}

/// An AMX tile: 16 rows of 16 pairs of `bf16`, or its transpose.
type AmxTile = [[u32; 16]; 16];

/// Packs columns of a right operand over a range of K: panels of [`SIDE`] one after the other, in each the blocks of that range.
pub(super) fn pack_right<C: Compute>(
    operand: &dyn GemmOperand<C>,
    batch: usize,
    cols: Range<usize>,
    k_range: Range<usize>,
    out: &mut [u16],
) {
    let steps = k_range.len().div_ceil(STEP);
    let (mut panels, mut blocks) = (0, 0);
    if let Bf16Source::InMemory(from) = operand.bf16_source(batch)
        && from.mn_stride == 1
    {
        (panels, blocks) = (cols.len() / SIDE, k_range.len() / STEP);
        let first =
            from.start as isize + cols.start as isize + k_range.start as isize * from.k_stride;
        level().run(PanelPacking { from, first, panels, blocks, each: steps * BLOCK, out });
    }
    for (s, k) in k_range.clone().step_by(STEP).enumerate() {
        let done = if s < blocks { panels } else { 0 };
        let k_range = k..k_range.end.min(k + STEP);
        let left = out.chunks_mut(steps * BLOCK).skip(done);
        for (col, panel) in (cols.start + done * SIDE..cols.end).step_by(SIDE).zip(left) {
            let mn_range = col..cols.end.min(col + SIDE);
            let packing = AmxBlock { mn: mn_range, k: k_range.clone(), form: AmxLayout::Right };
            pack(operand, batch, packing, &mut panel[s * BLOCK..][..BLOCK]);
        }
    }
}

/// Rows from those that are packed to those that are prefetched.
const AHEAD: isize = 4;

/// Whole panels of columns that lie side by side: two rows at a time, all panels of them, in the order of memory.
struct PanelPacking<'a> {
    from: DirectMatrix<'a, bf16>,
    first: isize,
    panels: usize,
    blocks: usize,
    each: usize,
    out: &'a mut [u16],
}

impl SimdKernel for PanelPacking<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let PanelPacking { from, first, panels, blocks, each, out } = self;
        let row =
            |k: usize| &from.data[(first + k as isize * from.k_stride) as usize..][..panels * SIDE];
        if panels == 0 {
            return;
        }
        for k in (0..blocks * STEP).step_by(2) {
            let (low, high) = (row(k), row(k + 1));
            let rows = low.as_chunks::<SIDE>().0.iter().zip(high.as_chunks::<SIDE>().0);
            // A block of the panel, and in both halves of it a row.
            let at = k / STEP * BLOCK + k % STEP * 16;
            for ((low, high), panel) in rows.zip(out.chunks_mut(each)) {
                for row in [low, high] {
                    fetch(row.as_ptr().wrapping_offset(AHEAD * from.k_stride), SIDE);
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

/// A block: up to [`SIDE`] rows or columns by [`STEP`] steps of K, filled up with zeros.
struct AmxBlock {
    mn: Range<usize>,
    k: Range<usize>,
    form: AmxLayout,
}

impl AmxBlock {
    #[inline(always)]
    fn tiles<C: Compute>(self, operand: &dyn GemmOperand<C>, batch: usize, out: &mut [u16]) {
        let AmxBlock { mn: mn_range, k: k_range, form } = self;
        let bf16_source = operand.bf16_source(batch);
        let tiles = bytemuck::cast_slice_mut::<u16, AmxTile>(out);
        for (half, tile) in (mn_range.start..).step_by(16).zip(tiles) {
            let some = half.min(mn_range.end)..mn_range.end.min(half + 16);
            let lies = match &bf16_source {
                Bf16Source::InMemory(from) if from.mn_stride == 1 => {
                    by_k(from, some, k_range.clone(), tile);
                    AmxLayout::Right
                }
                Bf16Source::InMemory(from) => {
                    by_mn(from, some, k_range.clone(), tile);
                    AmxLayout::Left
                }
                _ => {
                    packed(operand, batch, some, k_range.clone(), tile);
                    AmxLayout::Right
                }
            };
            if form != lies {
                *tile = transposed(tile);
            }
        }
    }
}

/// Packs a block with the vectors of the machine.
fn pack<C: Compute>(operand: &dyn GemmOperand<C>, batch: usize, block: AmxBlock, out: &mut [u16]) {
    struct PackBlock<'a, C>(&'a dyn GemmOperand<C>, usize, AmxBlock, &'a mut [u16]);
    impl<C: Compute> SimdKernel for PackBlock<'_, C> {
        type Output = ();

        #[inline(always)]
        fn run<I: Isa>(self) {
            self.2.tiles(self.0, self.1, self.3);
        }
    }
    level().run(PackBlock(operand, batch, block, out));
}

/// Rows that lie a multiple of that many bytes apart share sets of the cache, too few for 16 of them.
const CROWDED: isize = 4096;

/// Up to [`SIDE`] rows of a left operand over a range of K: where they lie, or packed if they are read more than a
/// `few_reads` times and would crowd each other out.
pub(super) fn amx_rows<C: Compute>(
    operand: &dyn GemmOperand<C>,
    batch: usize,
    mn_range: Range<usize>,
    k_range: Range<usize>,
    few_reads: bool,
    out: &mut [u16],
) -> AmxRows {
    let whole = mn_range.len() == SIDE && k_range.len().is_multiple_of(STEP);
    match operand.bf16_source(batch) {
        Bf16Source::InMemory(from) if whole && from.k_stride == 1 => {
            if few_reads || from.mn_stride * size_of::<bf16>() as isize % CROWDED != 0 {
                return rows_in_memory(&from, mn_range, k_range);
            }
            copy_rows(&from, mn_range, k_range, out);
        }
        _ => {
            for (k, block) in k_range.clone().step_by(STEP).zip(out.chunks_exact_mut(BLOCK)) {
                let k_range = k..k_range.end.min(k + STEP);
                let packing = AmxBlock { mn: mn_range.clone(), k: k_range, form: AmxLayout::Left };
                pack(operand, batch, packing, block);
            }
        }
    }
    AmxRows::packed(out)
}

/// Whole rows where they lie.
fn rows_in_memory(
    from: &DirectMatrix<'_, bf16>,
    mn_range: Range<usize>,
    k_range: Range<usize>,
) -> AmxRows {
    let size = size_of::<bf16>() as isize;
    // All others lie between these two.
    let [first, _] = [mn_range.start, mn_range.end - 1].map(|mn| from.run(mn, k_range.clone()));
    let first = first.as_ptr().cast::<u16>();
    AmxRows { first, row: from.mn_stride * size, step: STEP as isize * size }
}

/// Whole rows as they lie, each read to its end; those of the next blocks are prefetched.
fn copy_rows(
    from: &DirectMatrix<'_, bf16>,
    mn_range: Range<usize>,
    k_range: Range<usize>,
    out: &mut [u16],
) {
    for (i, mn) in mn_range.enumerate() {
        let run = from.run(mn, k_range.clone());
        let next = run.as_ptr().wrapping_offset(SIDE as isize * from.mn_stride);
        let (runs, _) = bytemuck::cast_slice::<bf16, u16>(run).as_chunks::<STEP>();
        for (s, (run, block)) in runs.iter().zip(out.chunks_exact_mut(BLOCK)).enumerate() {
            fetch(next.wrapping_add(s * STEP), STEP);
            block[i * STEP..][..STEP].copy_from_slice(run);
        }
    }
}

/// Rows and columns swapped.
#[inline(always)]
fn transposed(from: &AmxTile) -> AmxTile {
    std::array::from_fn(|i| std::array::from_fn(|j| from[j][i]))
}

/// Both halves of a pair.
#[inline(always)]
fn pair(low: bf16, high: bf16) -> u32 {
    u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
}

/// Pairs of an MN-major operand: two steps of K are two runs.
#[inline(always)]
fn by_k(
    from: &DirectMatrix<'_, bf16>,
    mn_range: Range<usize>,
    k_range: Range<usize>,
    pairs: &mut AmxTile,
) {
    if mn_range.len() < 16 || k_range.len() < STEP {
        *pairs = [[0; 16]; 16];
    }
    if mn_range.is_empty() {
        return;
    }
    let run = |k: usize| {
        let at = from.start as isize + mn_range.start as isize + k as isize * from.k_stride;
        &from.data[at as usize..][..mn_range.len()]
    };
    for (pairs, k) in pairs.iter_mut().zip(k_range.clone().step_by(2)) {
        let low = run(k);
        let high = if k + 1 < k_range.end { run(k + 1) } else { &[] };
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

/// Pairs along K, for each row or column.
#[inline(always)]
fn by_mn(
    from: &DirectMatrix<'_, bf16>,
    mn_range: Range<usize>,
    k_range: Range<usize>,
    pairs: &mut AmxTile,
) {
    if mn_range.len() < 16 || k_range.len() < STEP || from.k_stride != 1 {
        *pairs = [[0; 16]; 16];
    }
    for (pairs, mn) in pairs.iter_mut().zip(mn_range) {
        let at = from.start as isize + mn as isize * from.mn_stride;
        if from.k_stride == 1 {
            let run = &from.data[(at + k_range.start as isize) as usize..][..k_range.len()];
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
        for (i, k) in k_range.clone().enumerate() {
            let x = from.data[(at + k as isize * from.k_stride) as usize];
            pairs[i / 2] |= u32::from(x.to_bits()) << (i % 2 * 16);
        }
    }
}

/// Pairs of what is not in memory: its elements are exact in `f32`, where they have as many bits as before.
fn packed<C: Compute>(
    operand: &dyn GemmOperand<C>,
    batch: usize,
    mn_range: Range<usize>,
    k_range: Range<usize>,
    pairs: &mut AmxTile,
) {
    *pairs = [[0; 16]; 16];
    let mut wide = [C::ZERO; 16 * STEP];
    let wide = &mut wide[..16 * k_range.len()];
    if mn_range.is_empty() {
        return;
    }
    operand.pack(batch, mn_range, k_range, 16, wide);
    let bits = bytemuck::cast_slice::<C, u32>(wide);
    for (i, step) in bits.chunks_exact(16).enumerate() {
        for (pair, bits) in pairs[i / 2].iter_mut().zip(step) {
            *pair |= bits >> 16 << (i % 2 * 16);
        }
    }
}
