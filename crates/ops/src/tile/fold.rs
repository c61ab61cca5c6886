//! A program that closes with a fold, over a whole domain.
//!
//! What is folded with what in which order follows from the domain's sizes and the axes alone: blocks of
//! 512 elements (or single rows) are joined in order within a segment, segments in order. Segments are
//! what threads share where there are few results.

use bytemuck::cast_slice_mut;
use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Fold, Form};
use tonnage_core::workers::{Workers, for_each_chunk};
use tonnage_core::{DType, Layout};

use super::partial::{self, BLOCK, Bits};
use super::ready::{Ready, Slot};

/// Results that are enough to keep all threads busy without cutting the fold itself.
const MANY: usize = 32;
/// Elements that a segment has at least.
const SEGMENT: usize = 32 * 1024;

/// How a domain is folded.
pub struct FoldShape {
    /// Positions of results, outer axes only.
    outer: Layout,
    /// Positions of what is folded; for inner folds without the innermost axis.
    folded: Layout,
    /// Results side by side: the innermost axis where it is kept, 1 otherwise.
    width: usize,
    /// Elements side by side that fold into one: the innermost axis where it is folded, 1 otherwise.
    run: usize,
    segments: usize,
}

impl FoldShape {
    pub fn new(domain: &[usize], axes: &[usize]) -> FoldShape {
        // Neighbouring axes of one kind are one axis.
        let mut groups: SmallVec<[(usize, bool); 4]> = SmallVec::new();
        for (axis, size) in domain.iter().enumerate() {
            let folds = axes.contains(&axis);
            match groups.last_mut() {
                _ if *size == 1 => {}
                Some((n, kind)) if *kind == folds => *n *= size,
                _ => groups.push((*size, folds)),
            }
        }
        let inner = groups.last().copied();
        let sizes: Sizes = groups.iter().map(|(n, _)| *n).collect();
        let strides = tonnage_core::layout::contiguous_strides(&sizes);
        let pick = |kind: bool, end: usize| {
            let chosen = (0..end).filter(|i| groups[*i].1 == kind);
            Layout {
                sizes: chosen.clone().map(|i| sizes[i]).collect(),
                strides: chosen.map(|i| strides[i]).collect(),
                offset: 0,
            }
        };
        let n = groups.len();
        let (outer, folded, width, run) = match inner {
            Some((run, true)) => (pick(false, n), pick(true, n - 1), 1, run),
            Some((width, false)) => (pick(false, n - 1), pick(true, n), width, 1),
            None => (pick(false, 0), pick(true, 0), 1, 1),
        };
        let mut shape = FoldShape { outer, folded, width, run, segments: 1 };
        if shape.jobs() < MANY {
            let each = shape.units().saturating_mul(shape.run.min(BLOCK) * shape.width.min(BLOCK));
            shape.segments = (each / SEGMENT).clamp(1, if shape.width == 1 { 64 } else { 16 });
        }
        shape
    }

    /// Results in all.
    fn results(&self) -> usize {
        self.outer.count() * self.width
    }

    /// Results, as far as they are worked on together.
    fn jobs(&self) -> usize {
        self.outer.count() * self.width.div_ceil(BLOCK)
    }

    /// Blocks, or rows, that fold into one result.
    fn units(&self) -> usize {
        self.folded.count() * self.run.div_ceil(BLOCK)
    }

    /// Elements that fold into one result.
    fn count(&self) -> usize {
        self.folded.count() * self.run
    }

    /// Partial results of the segments.
    pub fn scratch(&self) -> Bytes {
        match self.segments {
            1 => Bytes::ZERO,
            n => Bytes::of(n * self.results() * size_of::<Bits>()).rounded(),
        }
    }

    /// Whether whole rows of one result each lie one after the other.
    fn rows_in_order(&self) -> bool {
        self.width == 1 && self.folded.sizes.is_empty() && self.outer.is_contiguous_by(self.run)
    }
}

trait ContiguousBy {
    fn is_contiguous_by(&self, step: usize) -> bool;
}

impl ContiguousBy for Layout {
    /// True where elements are `step` apart, in order.
    fn is_contiguous_by(&self, step: usize) -> bool {
        let expected = tonnage_core::layout::contiguous_strides(&self.sizes);
        self.strides.iter().zip(expected).all(|(s, e)| *s == e * step as isize)
    }
}

pub fn run(
    ready: &Ready,
    fold: Fold,
    shape: &FoldShape,
    outputs: &mut [&mut [u8]],
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    let (reg, form) = ready.program.stores[0];
    let held = ready.program.register(reg);
    let stored = match form {
        Form::Elements(dtype) => dtype,
        Form::Bits => DType::Bool,
    };
    let job = Job { ready, fold, shape, reg, held };
    let out = &mut *outputs[0];
    let results = shape.results();
    let finish = |bits: &[Bits], out: &mut [u8]| {
        for (bits, out) in bits.iter().zip(out.chunks_exact_mut(stored.size())) {
            partial::finish(fold, stored, *bits, shape.count(), out);
        }
    };
    if shape.segments == 1 {
        // Columns of one outer position are cut at blocks; single results are taken 64 at a time.
        let (per_row, together) = match shape.width {
            1 => (results, 64),
            width => (width, BLOCK),
        };
        let size = stored.size();
        for (row, out) in out.chunks_mut((per_row * size).max(1)).enumerate() {
            for_each_chunk(workers, out, together * size, &|chunk, out: &mut [u8]| {
                let count = out.len() / size;
                let mut sums = [partial::identity(fold, held); BLOCK];
                let first = row * per_row + chunk * together;
                job.results(first, 0..shape.units(), &mut sums[..count]);
                finish(&sums[..count], out);
            });
        }
        return Ok(());
    }
    segments(&job, &mut cast_slice_mut(scratch)[..shape.segments * results], workers);
    let partials = &mut cast_slice_mut::<u8, Bits>(scratch)[..shape.segments * results];
    let (sums, more) = partials.split_at_mut(results);
    for segment in more.chunks(results) {
        for (sum, bits) in sums.iter_mut().zip(segment) {
            *sum = partial::join(fold, held, *sum, *bits);
        }
    }
    finish(sums, out);
    Ok(())
}

/// The partial results of every segment, one segment after the other.
fn segments(job: &Job, partials: &mut [Bits], workers: &dyn Workers) {
    let shape = job.shape;
    let width = shape.width.min(BLOCK);
    // Blocks of columns never run over the end of a row of results.
    let per_row = shape.width.div_ceil(width);
    let jobs = shape.segments * shape.outer.count() * per_row;
    let mut cuts: SmallVec<[&mut [Bits]; 64]> = SmallVec::with_capacity(jobs);
    let mut rest = partials;
    for at in 0..jobs {
        let column = at % per_row * width;
        let (cut, tail) = rest.split_at_mut(width.min(shape.width - column));
        cuts.push(cut);
        rest = tail;
    }
    for_each_chunk(workers, &mut cuts, 1, &|at, cut| {
        let row = at / per_row;
        let (segment, outer) = (row / shape.outer.count(), row % shape.outer.count());
        let cut = &mut *cut[0];
        cut.fill(partial::identity(job.fold, job.held));
        let units = shape.units();
        let range = segment * units / shape.segments..(segment + 1) * units / shape.segments;
        job.results(outer * shape.width + at % per_row * width, range, cut);
    });
}

struct Job<'a, 'r> {
    ready: &'a Ready<'r>,
    fold: Fold,
    shape: &'a FoldShape,
    reg: tonnage_core::tile::Reg,
    held: DType,
}

impl Job<'_, '_> {
    /// Folds those units into the results from `first` on, of one row of results or of one each.
    fn results(&self, first: usize, units: std::ops::Range<usize>, sums: &mut [Bits]) {
        match self.ready.slots {
            0 => self.with::<1>(first, units, sums),
            1..=2 => self.with::<2>(first, units, sums),
            3..=6 => self.with::<6>(first, units, sums),
            7..=12 => self.with::<12>(first, units, sums),
            _ => self.with::<{ super::ready::MOST_SLOTS }>(first, units, sums),
        }
    }

    fn with<const SLOTS: usize>(
        &self,
        first: usize,
        units: std::ops::Range<usize>,
        sums: &mut [Bits],
    ) {
        let mut slots: [Slot; SLOTS] = [[0; 512]; SLOTS];
        if self.shape.width > 1 {
            self.columns(first, units, sums, &mut slots);
        } else if self.shape.rows_in_order() && (1..=BLOCK / 2).contains(&self.shape.run) {
            self.short_rows(first, sums, &mut slots);
        } else {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = self.one(first + i, units.clone(), *sum, &mut slots);
            }
        }
    }

    /// Several short rows in one tile.
    fn short_rows(&self, first: usize, sums: &mut [Bits], slots: &mut [Slot]) {
        let (run, tile) = (self.shape.run, self.ready.tile);
        let size = self.held.size();
        for (i, group) in sums.chunks_mut(tile / run).enumerate() {
            let start = (first + i * (tile / run)) * run;
            let len = group.len() * run;
            self.ready.eval(start, len, &mut [], slots);
            let value = self.ready.value(self.reg, start, len, slots);
            let mut spread = [0u64; BLOCK];
            for (j, sum) in group.iter_mut().enumerate() {
                let row = match value.len() == size {
                    true => spread_out(value, run, &mut spread),
                    false => &value[j * run * size..(j + 1) * run * size],
                };
                let bits = partial::block(self.fold, self.held, row);
                *sum = partial::join(self.fold, self.held, *sum, bits);
            }
        }
    }

    /// One result from blocks along the innermost axis.
    fn one(
        &self,
        result: usize,
        units: std::ops::Range<usize>,
        mut sum: Bits,
        slots: &mut [Slot],
    ) -> Bits {
        let shape = self.shape;
        let base = at(&shape.outer, result);
        let per_run = shape.run.div_ceil(BLOCK);
        let size = self.held.size();
        let mut spread = [0u64; BLOCK];
        let mut same = None;
        let mut unit = units.start;
        while unit < units.end {
            let (outer, block) = (unit / per_run, unit % per_run);
            // As many blocks of this run as a tile holds.
            let blocks = (self.ready.tile / BLOCK).min(per_run - block).min(units.end - unit);
            let from = block * BLOCK;
            let len = (blocks * BLOCK).min(shape.run - from);
            let start = base + at(&shape.folded, outer) + from;
            self.ready.eval(start, len, &mut [], slots);
            let value = self.ready.value(self.reg, start, len, slots);
            if value.len() == size && len > 1 {
                // The same value everywhere: a whole block is folded once for all of them.
                let left = units.end - unit;
                let whole = left.min((shape.run / BLOCK).saturating_sub(block));
                if whole > 0 {
                    let bits = *same.get_or_insert_with(|| {
                        partial::block(self.fold, self.held, spread_out(value, BLOCK, &mut spread))
                    });
                    for _ in 0..whole {
                        sum = partial::join(self.fold, self.held, sum, bits);
                    }
                    unit += whole;
                    continue;
                }
                let row = spread_out(value, shape.run - from, &mut spread);
                sum = partial::join(
                    self.fold,
                    self.held,
                    sum,
                    partial::block(self.fold, self.held, row),
                );
                unit += 1;
                continue;
            }
            for i in 0..blocks {
                let n = BLOCK.min(len - i * BLOCK);
                let part = &value[i * BLOCK * size..(i * BLOCK + n) * size];
                let bits = partial::block(self.fold, self.held, part);
                sum = partial::join(self.fold, self.held, sum, bits);
            }
            unit += blocks;
        }
        sum
    }

    /// Results side by side, from rows of elements side by side.
    fn columns(
        &self,
        first: usize,
        units: std::ops::Range<usize>,
        sums: &mut [Bits],
        slots: &mut [Slot],
    ) {
        let shape = self.shape;
        let base = at(&shape.outer, first / shape.width) + first % shape.width;
        let whole = sums.len() == shape.width;
        // Whole rows that lie one after the other are evaluated together.
        let in_order = whole && shape.folded.is_contiguous_by(shape.width);
        let together = if in_order { (self.ready.tile / shape.width).max(1) } else { 1 };
        let size = self.held.size();
        let mut spread = [0u64; BLOCK];
        let mut unit = units.start;
        while unit < units.end {
            let rows = together.min(units.end - unit);
            let start = base + at(&shape.folded, unit);
            let len = rows * sums.len();
            self.ready.eval(start, len, &mut [], slots);
            let value = self.ready.value(self.reg, start, len, slots);
            if value.len() == size && len > 1 {
                let row = spread_out(value, sums.len(), &mut spread);
                for _ in 0..rows {
                    partial::rows(self.fold, self.held, row, sums);
                }
            } else {
                partial::rows(self.fold, self.held, value, sums);
            }
            unit += rows;
        }
    }
}

/// The position of the element of that number in logical order.
fn at(layout: &Layout, mut index: usize) -> usize {
    let mut position = 0;
    for (size, stride) in layout.sizes.iter().zip(&layout.strides).rev() {
        position += (index % size) * *stride as usize;
        index /= size;
    }
    position
}

/// One element repeated.
fn spread_out<'s>(value: &[u8], count: usize, into: &'s mut [u64; BLOCK]) -> &'s [u8] {
    let bytes = &mut cast_slice_mut::<u64, u8>(into)[..count * value.len()];
    bytes.chunks_exact_mut(value.len()).for_each(|x| x.copy_from_slice(value));
    bytes
}
