//! Launches whose result goes to a file, a piece at a time: each thread makes its own pieces, and while one writes, the
//! others compute.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::dtype::DType;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::lent::{Data, In};
use tonnage_core::recipe::Stored;
use tonnage_core::row::{Cost, OpDef};
use tonnage_cpu::rows_in_parts::{self, RowsInParts};
use tonnage_cpu::tile::{self, FILE_PIECE, Pieces, TileSource, file_piece};
use tonnage_cpu::workers::{Alone, Workers, for_each_part};
use tonnage_plan::{FileValuePlan, TileRun};

use super::tile::sources;
use super::{ReadSource, nothing};
use crate::execute::missing;
use crate::lend::{ByteRange, Lender};
use crate::pool::pool;
use crate::spill::FileValue;

/// A tile program whose output is a value in a file.
pub struct TileToFile<'a> {
    /// The program and its domain.
    pub run: &'a TileRun,
    /// What its loads read.
    pub loads: &'a [ReadSource],
    /// The byte ranges among that.
    pub reads: &'a [ByteRange],
    /// Where threads make pieces.
    pub scratch: ByteRange,
    /// What the value is.
    pub planned: &'a FileValuePlan,
    /// Where it goes.
    pub to: &'a FileValue,
}

impl TileToFile<'_> {
    /// Runs it.
    pub fn run(&self, lender: &mut Lender) -> Result<()> {
        let (run, to) = (self.run, self.to);
        let mut lent = lender.lend(self.reads, &[self.scratch])?;
        let all = sources(run, self.loads, &lent.reads);
        let size = self.planned.dtype.size();
        let pieces = Pieces::of(&run.domain, FILE_PIECE / size);
        let one = |number: usize, scratch: &mut [u8]| -> Result<()> {
            let piece = pieces.piece(number);
            let parts: SmallVec<[TileSource; 4]> = all
                .iter()
                .map(|source| TileSource { layout: piece.of(&source.layout), read: source.read })
                .collect();
            let scratch = &mut scratch[..piece.sizes.iter().product::<usize>() * size];
            tile::run(&run.program, &piece.sizes, &parts, &mut [&mut *scratch], nothing(), &Alone)?;
            to.write(piece.start, scratch)
        };
        let bytes = self.planned.bytes();
        let thread_scratch = ThreadScratch { scratch: &mut *lent.writes[0], bytes, size };
        pool().run(run.cost, |workers| thread_scratch.each(pieces.count(), workers, &one))
    }
}

/// A table in a file with some of its rows changed, to another place.
pub struct RowsToFile<'a> {
    /// How rows are changed.
    pub op: &'static OpDef,
    /// The sizes of the table.
    pub sizes: &'a [usize],
    /// Its dtype.
    pub dtype: DType,
    /// The table as it is.
    pub old: &'a Stored,
    /// Indices and rows.
    pub inputs: SmallVec<[(DType, Layout, ReadSource); 2]>,
    /// The byte ranges among that.
    pub reads: &'a [ByteRange],
    /// Where threads make pieces, behind the order of the rows.
    pub scratch: ByteRange,
    /// Where the table goes.
    pub to: &'a FileValue,
}

impl RowsToFile<'_> {
    /// Runs it.
    pub fn run(self, lender: &mut Lender) -> Result<()> {
        let (op, sizes, old, to) = (self.op, self.sizes, self.old, self.to);
        let mut lent = lender.lend(self.reads, &[self.scratch])?;
        let inputs: SmallVec<[In; 2]> = self
            .inputs
            .into_iter()
            .map(|(dtype, layout, from)| {
                let data = match from {
                    ReadSource::Range(i) => lent.reads[i],
                    ReadSource::Output(_) | ReadSource::Generator(_) => &[],
                };
                In { dtype, layout, data: Data::Slice(data) }
            })
            .collect();
        let [indices, rows] = &inputs[..] else { return Err(missing()) };
        let order = rows_in_parts::order_bytes(indices.layout.count()).as_usize();
        let (order, scratch) = lent.writes[0].split_at_mut(order);
        let order: &mut [u64] = &mut bytemuck::cast_slice_mut(order)[..indices.layout.count()];
        let (size, count) = (self.dtype.size(), sizes.iter().product::<usize>());
        let cost = Cost { flops: 0, bytes: 2 * (count * size) as u64 };
        let bytes = Bytes::of(count * size);
        let thread_scratch = ThreadScratch { scratch, bytes, size };
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
