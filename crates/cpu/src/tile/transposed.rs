//! A program that stores and reads something transposed, over its domain block by block. A load whose neighbours along a row lie
//! far apart, while those of the next rows lie side by side, would bring a cache line for every element: so some rows
//! of it are brought at once, a whole cache line each, and the tiles of those rows are computed from there.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::tile::Form;

use super::eval::PrefetchedLoad;
use super::ready::{LoadSource, MOST_SLOTS, Ready, TileSlot};
use super::store::{Outputs, bytes, in_two};
use crate::linalg::gemm::{Compute, Reads, StridedSource as PackSource, pack_strided};
use crate::workers::Workers;

/// Rows that are brought at once: a cache line of four-byte elements.
const ROWS: usize = 16;

/// Elements of each row that are.
const COLS: usize = 128;

/// Loads that are brought so; more are read as they lie.
const MOST: usize = 2;

/// Elements that lie this many bytes apart share no cache line.
const APART: usize = 64;

/// Domains of fewer elements lie in the cache anyway.
const WORTHWHILE: usize = 16 * 1024;

/// Some rows of a load.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct TransposeBuffer([u64; ROWS * COLS]);

/// A load that is transposed.
struct TransposedLoad<'a> {
    number: usize,
    from: &'a [u8],
    layout: &'a Layout,
    size: usize,
}

/// How a domain is cut: `outer * rows * between * cols` elements, where transposed loads run along rows.
pub(super) struct TransposedBlocks<'a> {
    loads: SmallVec<[TransposedLoad<'a>; MOST]>,
    outer: usize,
    rows: usize,
    between: usize,
    cols: usize,
}

impl<'a> TransposedBlocks<'a> {
    /// The cut of a program that reads something transposed, in a domain that is worth it.
    pub fn of(ready: &'a Ready<'_>, domain: &[usize]) -> Option<TransposedBlocks<'a>> {
        if ready.loads.is_empty() {
            return None;
        }
        let count: usize = domain.iter().product();
        let bits = ready.program.stores.iter().any(|(_, form)| *form == Form::Bits);
        if count < WORTHWHILE || bits {
            return None;
        }
        let (mut along, mut loads) = (None, SmallVec::new());
        for (number, load) in ready.loads.iter().enumerate() {
            let LoadSource::Gather { from, layout, .. } = &load.fetch else { continue };
            let size = load.stored.size();
            let Some(axis) = transposed(layout, size) else { continue };
            if *along.get_or_insert(axis) == axis && loads.len() < MOST {
                loads.push(TransposedLoad { number, from, layout, size });
            }
        }
        let (axis, last) = (along?, domain.len() - 1);
        Some(TransposedBlocks {
            loads,
            outer: domain[..axis].iter().product(),
            rows: domain[axis],
            between: domain[axis + 1..last].iter().product(),
            cols: domain[last],
        })
    }

    /// Bands are as many rows as are brought at once, with all that lies between: runs of the outputs.
    fn bands(&self) -> usize {
        self.outer * self.rows.div_ceil(ROWS)
    }

    /// The first element of a band, or the end.
    fn start(&self, band: usize) -> usize {
        let each = self.rows.div_ceil(ROWS);
        let row = (band % each * ROWS).min(self.rows);
        (band / each * self.rows + row) * self.between * self.cols
    }

    /// Computes the outputs on all threads.
    pub fn run(&self, ready: &Ready, outputs: Outputs, workers: &dyn Workers) {
        let grain = match workers.threads() {
            0 | 1 => self.bands(),
            threads => self.bands().div_ceil(4 * threads),
        };
        self.split(ready, (0, self.bands()), outputs, grain.max(1), workers);
    }

    fn split(
        &self,
        ready: &Ready,
        (first, end): (usize, usize),
        outputs: Outputs,
        grain: usize,
        workers: &dyn Workers,
    ) {
        if end - first <= grain {
            return match ready.slots {
                0..=6 => self.piece::<6>(ready, (first, end), outputs, workers),
                7..=12 => self.piece::<12>(ready, (first, end), outputs, workers),
                _ => self.piece::<MOST_SLOTS>(ready, (first, end), outputs, workers),
            };
        }
        let middle = first + (end - first) / 2;
        let elements = self.start(middle) - self.start(first);
        in_two(
            ready,
            outputs,
            elements,
            workers,
            &|outputs| self.split(ready, (first, middle), outputs, grain, workers),
            &|outputs| self.split(ready, (middle, end), outputs, grain, workers),
        );
    }

    fn piece<const SLOTS: usize>(
        &self,
        ready: &Ready,
        (first, end): (usize, usize),
        mut outputs: Outputs,
        workers: &dyn Workers,
    ) {
        let mut slots = [TileSlot::EMPTY; SLOTS];
        let mut slabs = [TransposeBuffer([0; ROWS * COLS]); MOST];
        let begin = self.start(first);
        // Elements of a row of what is brought; rows that follow each other in the domain too are computed together.
        let wide = self.cols.min(COLS);
        let whole_rows = self.between == 1 && wide == self.cols;
        let together = if whole_rows { (ready.tile / wide.max(1)).max(1) } else { 1 };
        for band in first..end {
            if workers.is_stopped() {
                return;
            }
            let start = self.start(band);
            let rows = (self.start(band + 1) - start) / (self.between * self.cols);
            for b in 0..self.between {
                for col in (0..self.cols).step_by(COLS) {
                    let (at, cols) = (b * self.cols + col, COLS.min(self.cols - col));
                    for (load, slab) in self.loads.iter().zip(&mut slabs) {
                        load.bring(start + at, rows, (cols, wide), slab);
                    }
                    for row in (0..rows).step_by(together) {
                        let at = start + row * self.between * self.cols + at;
                        let len = together.min(rows - row) * cols;
                        let beside: SmallVec<[PrefetchedLoad; MOST]> = self
                            .loads
                            .iter()
                            .zip(&slabs)
                            .map(|(load, slab)| load.brought(slab, row * wide, len))
                            .collect();
                        let all = outputs.iter_mut().zip(&ready.program.stores);
                        let mut parts: Outputs = all
                            .map(|(out, (_, form))| {
                                let from = bytes(*form, at - begin);
                                &mut out[from..from + bytes(*form, len)]
                            })
                            .collect();
                        ready.eval_beside(at, len, &mut parts, &mut slots, &beside);
                    }
                }
            }
        }
    }
}

impl TransposedLoad<'_> {
    /// Brings a block from an element of the domain on: each step along the last axis is a run of `rows` elements.
    /// Those of a row lie side by side, and rows `wide` apart.
    fn bring(
        &self,
        first: usize,
        rows: usize,
        (cols, wide): (usize, usize),
        slab: &mut TransposeBuffer,
    ) {
        let start = position(self.layout, first);
        let step = self.layout.strides.last().copied().unwrap_or(0);
        // As floats of that size, whose bits are moved as they are: the packing of products has the instructions for it.
        match self.size {
            8 => transpose::<f64>(self.from, start, step, (rows, cols, wide), slab),
            4 => transpose::<f32>(self.from, start, step, (rows, cols, wide), slab),
            2 => copy::<u16>(self.from, start, step, (rows, cols, wide), slab),
            _ => copy::<u8>(self.from, start, step, (rows, cols, wide), slab),
        }
    }

    /// Elements of what was brought, from one on.
    fn brought<'s>(&self, slab: &'s TransposeBuffer, at: usize, len: usize) -> PrefetchedLoad<'s> {
        let all: &[u8] = cast_slice(&slab.0);
        let raw = &all[at * self.size..][..len * self.size];
        PrefetchedLoad { load: self.number, raw }
    }
}

fn transpose<T: Compute + Reads<T> + Pod>(
    from: &[u8],
    start: isize,
    step: isize,
    (rows, cols, wide): (usize, usize, usize),
    slab: &mut TransposeBuffer,
) {
    let source =
        PackSource { data: cast_slice::<u8, T>(from), start, mn_stride: step, k_stride: 1 };
    let slab: &mut [T] = cast_slice_mut(&mut slab.0);
    pack_strided(&source, cols, rows, wide, &mut slab[..rows * wide]);
}

fn copy<T: Pod>(
    from: &[u8],
    start: isize,
    step: isize,
    (rows, cols, wide): (usize, usize, usize),
    slab: &mut TransposeBuffer,
) {
    let (from, slab): (&[T], &mut [T]) = (cast_slice(from), cast_slice_mut(&mut slab.0));
    for col in 0..cols {
        let at = (start + col as isize * step) as usize;
        let row = &from[at..at + rows];
        for (to, from) in slab[col..].iter_mut().step_by(wide).zip(row) {
            *to = *from;
        }
    }
}

/// Where the element of that number lies.
fn position(layout: &Layout, mut number: usize) -> isize {
    let mut at = layout.offset as isize;
    for (size, stride) in layout.sizes.iter().zip(&layout.strides).rev() {
        at += (number % size) as isize * stride;
        number /= size;
    }
    at
}

/// The axis along which elements lie side by side, where those of the last axis lie apart.
fn transposed(layout: &Layout, size: usize) -> Option<usize> {
    let (last, outer) = layout.strides.split_last()?;
    let cols = layout.sizes.last()?;
    if *cols < COLS / 8 || last.unsigned_abs() * size < APART {
        return None;
    }
    outer.iter().zip(&layout.sizes).position(|(stride, rows)| *stride == 1 && *rows >= ROWS / 2)
}
