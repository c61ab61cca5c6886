//! Launches whose result goes to a file, a piece at a time: each thread makes its own pieces, and while one writes, the
//! others compute.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In};
use tonnage_core::row::Cost;
use tonnage_cpu::rows_in_parts::{self, RowsInParts};
use tonnage_cpu::tile::{self, FILE_PIECE, Pieces, TileSource, file_piece};
use tonnage_cpu::workers::{Alone, Workers, for_each_part};

use super::nothing;
use super::tile::sources;
use crate::backend::{KernelInput, ReadSource, RowsToFile, TileToFile, load_layouts};
use crate::execute::missing;
use crate::lend::Regions;
use crate::pool::pool;

/// Makes a value by a tile program, and writes it to its file.
pub fn tile(launch: &TileToFile<'_>, regions: Regions<'_>) -> Result<()> {
    let (run, to) = (launch.run, launch.to);
    let all = sources(launch.loads, load_layouts(run), &regions.reads)?;
    let size = launch.planned.dtype.size();
    let pieces = Pieces::of(&run.domain, FILE_PIECE / size);
    let one = |number: usize, scratch: &mut [u8]| -> Result<()> {
        let piece = pieces.piece(number);
        let parts: SmallVec<[TileSource; 4]> = all
            .iter()
            .map(|source| TileSource {
                layout: Cow::Owned(piece.of(&source.layout)),
                read: source.read,
            })
            .collect();
        let scratch = &mut scratch[..piece.sizes.iter().product::<usize>() * size];
        tile::run(&run.program, &piece.sizes, &parts, &mut [&mut *scratch], nothing(), &Alone)?;
        to.write(piece.start, scratch)
    };
    let bytes = launch.planned.bytes();
    let scratch = regions.writes.into_iter().next().ok_or_else(missing)?.into_bytes()?;
    let thread_scratch = ThreadScratch { scratch, bytes, size };
    pool().run(run.cost, |workers| thread_scratch.each(pieces.count(), workers, &one))
}

/// Changes rows of a table, and writes what it is then to its file.
pub fn rows(launch: RowsToFile<'_>, regions: Regions<'_>) -> Result<()> {
    let RowsToFile { op, sizes, dtype, old, inputs, to } = launch;
    let mut ins: SmallVec<[In; 2]> = SmallVec::new();
    for KernelInput { dtype, layout, from } in inputs {
        let data = match from {
            ReadSource::Range(i) => regions.reads[i].bytes()?,
            ReadSource::Output(_) | ReadSource::Generator(_) => &[],
        };
        ins.push(In { dtype, layout, data: Data::Slice(data) });
    }
    let [indices, rows] = &ins[..] else { return Err(missing()) };
    let order = rows_in_parts::order_bytes(indices.layout.count()).as_usize();
    let scratch = regions.writes.into_iter().next().ok_or_else(missing)?.into_bytes()?;
    let (order, scratch) = scratch.split_at_mut(order);
    let order: &mut [u64] = &mut bytemuck::cast_slice_mut(order)[..indices.layout.count()];
    let (size, count) = (dtype.size(), sizes.iter().product::<usize>());
    let cost = Cost::local(0, 2 * (count * size) as u64);
    let thread_scratch = ThreadScratch { scratch, bytes: Bytes::of(count * size), size };
    pool().run(cost, |workers| {
        let rows = RowsInParts::new(op, sizes, [indices, rows], order, workers)?;
        let piece = FILE_PIECE / size;
        let one = |number: usize, scratch: &mut [u8]| -> Result<()> {
            let first = number * piece;
            let scratch = &mut scratch[..piece.min(count - first) * size];
            old.0.read(first as u64, scratch);
            rows.put(first, scratch)?;
            to.write(first, scratch)
        };
        thread_scratch.each(count.div_ceil(piece), workers, &one)
    })?;
    old.0.check()
}

/// Memory in which threads make pieces of what goes to a file, each in its own.
struct ThreadScratch<'a> {
    scratch: &'a mut [u8],
    /// Of all that goes to the file.
    bytes: Bytes,
    /// Of an element.
    size: usize,
}

impl ThreadScratch<'_> {
    /// Makes `count` pieces: every thread that works takes the next few.
    fn each(
        self,
        count: usize,
        workers: &dyn Workers,
        one: &(dyn Fn(usize, &mut [u8]) -> Result<()> + Sync),
    ) -> Result<()> {
        let piece = file_piece(self.bytes);
        let own = piece / self.size * self.size;
        let shares = workers.threads().min((self.scratch.len() / piece).max(1));
        let failed: Mutex<Option<tonnage_core::Error>> = Mutex::new(None);
        let thread_scratch = &mut self.scratch[..shares * own];
        for_each_part(workers, thread_scratch, shares, &|i| i * own, &|share, scratch| {
            for number in count * share / shares..count * (share + 1) / shares {
                if let Err(error) = one(number, scratch) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            }
        })?;
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}
