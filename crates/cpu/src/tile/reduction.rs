//! A program that closes with a reduction, over a whole domain.
//!
//! Which elements are combined in which order follows from the domain's sizes and the axes alone (`reduction_shape`):
//! blocks of 512 elements (or single rows) are joined in order within a segment, segments in order. Segments
//! are what threads share where there are few results.

use bytemuck::cast_slice_mut;
use tonnage_core::DType;
use tonnage_core::error::Result;
use tonnage_core::tile::{Form, Reduction};

use super::partial::{self, BLOCK, Bits};
use super::ready::{Ready, TileSlot};
use super::reduction_shape::ReductionShape;
use super::repeat::repeated;
use crate::parallel::GRAIN;
use crate::workers::{Alone, Workers, for_each_part};

/// Results side by side that are worked on together where a file is read: as much of each row as is read at once.
const WIDE: usize = 8 * BLOCK;

pub fn run(
    ready: &Ready,
    reduction: Reduction,
    shape: &ReductionShape,
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
    let job = ReductionJob { ready, reduction, shape, reg, held };
    let out = &mut *outputs[0];
    let results = shape.results();
    let finish = |bits: &[Bits], out: &mut [u8]| {
        for (bits, out) in bits.iter().zip(out.chunks_exact_mut(stored.size())) {
            partial::finish(reduction, stored, *bits, shape.count(), out);
        }
    };
    if shape.segments == 1 {
        let size = stored.size();
        let together = if ready.reads_files() { WIDE } else { BLOCK };
        let (jobs, cut) = whole(shape, together);
        let few = shape.results().saturating_mul(shape.count()) < GRAIN;
        let workers = if few { &Alone } else { workers };
        let made = |at: usize, sums: &mut [Bits], out: &mut [u8]| {
            // A row of results at a time, or a part of one; of single results all at once.
            let row = if shape.width == 1 { sums.len() } else { sums.len().min(shape.width) };
            for (i, sums) in sums.chunks_mut(row.max(1)).enumerate() {
                job.results(cut(at) + i * row, 0..shape.units(), sums);
            }
            finish(sums, out);
        };
        for_each_part(workers, out, jobs, &|job| cut(job) * size, &|at, out: &mut [u8]| {
            let (count, none) = (out.len() / size, partial::identity(reduction, held));
            match count <= BLOCK {
                true => made(at, &mut [none; BLOCK][..count], out),
                false => made(at, &mut [none; WIDE][..count], out),
            }
        })?;
        return Ok(());
    }
    segments(&job, &mut cast_slice_mut(scratch)[..shape.segments * results], workers)?;
    let partials = &mut cast_slice_mut::<u8, Bits>(scratch)[..shape.segments * results];
    let (sums, more) = partials.split_at_mut(results);
    for segment in more.chunks(results) {
        for (sum, bits) in sums.iter_mut().zip(segment) {
            *sum = partial::join(reduction, held, *sum, *bits);
        }
    }
    finish(sums, out);
    Ok(())
}

/// Results in jobs of up to `most`, which threads share: how many, and where each begins. A block of columns does not run
/// over the end of a row; of shorter rows there are several in one.
fn whole(shape: &ReductionShape, most: usize) -> (usize, impl Fn(usize) -> usize + Sync) {
    let (width, results) = (shape.width, shape.results());
    let together = match width {
        0 | 1 => 64,
        narrow if narrow < BLOCK => BLOCK / narrow * narrow,
        _ => most,
    };
    let row = if width < BLOCK { results } else { width };
    let per_row = row.div_ceil(together).max(1);
    let jobs = results.div_ceil(row.max(1)) * per_row;
    let cut = move |at: usize| (at / per_row * row + at % per_row * together).min(results);
    (jobs, cut)
}

/// The partial results of every segment, one segment after the other.
fn segments(job: &ReductionJob, partials: &mut [Bits], workers: &dyn Workers) -> Result<()> {
    let shape = job.shape;
    let width = shape.width.min(if job.ready.reads_files() { WIDE } else { BLOCK });
    // Blocks of columns never run over the end of a row of results.
    let per_row = shape.width.div_ceil(width);
    let jobs = shape.segments * shape.outer.count * per_row;
    let cut = |at: usize| at / per_row * shape.width + at % per_row * width;
    for_each_part(workers, partials, jobs, &cut, &|at, cut| {
        let row = at / per_row;
        let (segment, outer) = (row / shape.outer.count, row % shape.outer.count);
        cut.fill(partial::identity(job.reduction, job.held));
        let units = shape.units();
        let range = segment * units / shape.segments..(segment + 1) * units / shape.segments;
        job.results(outer * shape.width + at % per_row * width, range, cut);
    })
}

struct ReductionJob<'a, 'r> {
    ready: &'a Ready<'r>,
    reduction: Reduction,
    shape: &'a ReductionShape<'a>,
    reg: tonnage_core::tile::Reg,
    held: DType,
}

impl ReductionJob<'_, '_> {
    /// Reduces those units into the results from `first` on, of one row of results or of one each.
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
        let mut slots = [TileSlot::EMPTY; SLOTS];
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
    fn short_rows(&self, first: usize, sums: &mut [Bits], slots: &mut [TileSlot]) {
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
                let bits = partial::block(self.reduction, self.held, row);
                *sum = partial::join(self.reduction, self.held, *sum, bits);
            }
        }
    }

    /// One result from blocks along the innermost axis.
    fn one(
        &self,
        result: usize,
        units: std::ops::Range<usize>,
        mut sum: Bits,
        slots: &mut [TileSlot],
    ) -> Bits {
        let shape = self.shape;
        let base = shape.outer_at(result);
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
            let start = base + shape.reduced_at(outer) + from;
            self.ready.eval(start, len, &mut [], slots);
            let value = self.ready.value(self.reg, start, len, slots);
            if value.len() == size && len > 1 {
                // The same value everywhere: a whole block is reduced once for all of them.
                let left = units.end - unit;
                let whole = left.min((shape.run / BLOCK).saturating_sub(block));
                if whole > 0 {
                    let bits = *same.get_or_insert_with(|| {
                        partial::block(
                            self.reduction,
                            self.held,
                            spread_out(value, BLOCK, &mut spread),
                        )
                    });
                    sum = repeated(self.reduction, self.held, sum, bits, whole);
                    unit += whole;
                    continue;
                }
                let row = spread_out(value, shape.run - from, &mut spread);
                sum = partial::join(
                    self.reduction,
                    self.held,
                    sum,
                    partial::block(self.reduction, self.held, row),
                );
                unit += 1;
                continue;
            }
            for i in 0..blocks {
                let n = BLOCK.min(len - i * BLOCK);
                let part = &value[i * BLOCK * size..(i * BLOCK + n) * size];
                let bits = partial::block(self.reduction, self.held, part);
                sum = partial::join(self.reduction, self.held, sum, bits);
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
        slots: &mut [TileSlot],
    ) {
        let shape = self.shape;
        let base = shape.outer_at(first / shape.width) + first % shape.width;
        let whole = sums.len() == shape.width;
        // Whole rows that lie one after the other are evaluated together; of a long one a block at a time.
        let in_order = whole && shape.reduced.groups <= 1 && sums.len() <= BLOCK;
        let together = if in_order { (self.ready.tile / shape.width).max(1) } else { 1 };
        let size = self.held.size();
        let mut spread = [0u64; BLOCK];
        let mut unit = units.start;
        while unit < units.end {
            let rows = together.min(units.end - unit);
            for (i, sums) in sums.chunks_mut(BLOCK).enumerate() {
                let start = base + shape.reduced_at(unit) + i * BLOCK;
                let len = rows * sums.len();
                self.ready.eval(start, len, &mut [], slots);
                let value = self.ready.value(self.reg, start, len, slots);
                if value.len() == size && len > 1 {
                    let row = spread_out(value, sums.len(), &mut spread);
                    for _ in 0..rows {
                        partial::rows(self.reduction, self.held, row, sums);
                    }
                } else {
                    partial::rows(self.reduction, self.held, value, sums);
                }
            }
            unit += rows;
        }
    }
}

/// One element repeated.
fn spread_out<'s>(value: &[u8], count: usize, into: &'s mut [u64; BLOCK]) -> &'s [u8] {
    let bytes = &mut cast_slice_mut::<u64, u8>(into)[..count * value.len()];
    bytes.chunks_exact_mut(value.len()).for_each(|x| x.copy_from_slice(value));
    bytes
}
