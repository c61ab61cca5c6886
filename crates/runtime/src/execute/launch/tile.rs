//! The launch of a tile program.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::Cost;
use tonnage_cpu::tile;
use tonnage_plan::{TileRead, TileRun};

use super::{ReadSource, nothing};
use crate::interrupt::Stop;
use crate::lend::{ByteRange, Lender};
use crate::pool::pool;

/// A tile program and what it runs over.
pub struct TileLaunch<'a> {
    /// The program and its domain.
    pub run: &'a TileRun,
    /// What its loads read.
    pub loads: &'a [ReadSource],
    /// The byte ranges among that.
    pub reads: &'a [ByteRange],
    /// Its outputs, and behind them its scratch, if it has any.
    pub writes: &'a [ByteRange],
    /// How many outputs there are.
    pub outputs: usize,
    /// What it takes, to decide on threads.
    pub cost: Cost,
    /// What stops it before its end.
    pub stop: Option<&'a Stop>,
}

impl TileLaunch<'_> {
    /// Runs it.
    pub fn run(&self, lender: &mut Lender) -> Result<()> {
        let run = self.run;
        let mut lent = lender.lend(self.reads, self.writes)?;
        let sources = sources(run, self.loads, &lent.reads);
        let (outs, rest) = lent.writes.split_at_mut(self.outputs);
        let scratch: &mut [u8] = rest.first_mut().map_or(nothing(), |s| &mut **s);
        pool().run_until(self.cost, self.stop, |workers| {
            tile::run(&run.program, &run.domain, &sources, outs, scratch, workers)
        })
    }
}

/// What the loads of a program read, now that bytes are lent.
pub fn sources<'a>(
    run: &TileRun,
    from: &'a [ReadSource],
    lent: &[&'a [u8]],
) -> SmallVec<[tile::TileSource<'a>; 4]> {
    let source = |(from, read): (&'a ReadSource, &TileRead)| {
        let (TileRead::Generator(_, layout) | TileRead::Input(_, layout)) = read;
        let read = match from {
            ReadSource::Generator(generator) => tile::Read::Generator(generator),
            ReadSource::Output(output) => tile::Read::Output(*output),
            ReadSource::Range(i) => tile::Read::Slice(lent[*i]),
        };
        tile::TileSource { layout: layout.clone(), read }
    };
    from.iter().zip(&run.reads).map(source).collect()
}
