//! A tile program over slices.

use std::borrow::Cow;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_cpu::tile;

use super::nothing;
use crate::backend::{ReadSource, TileLaunch};
use crate::lend::{Region, Regions};
use crate::pool::pool;

/// Runs it.
pub fn run(launch: &TileLaunch<'_>, regions: Regions<'_>) -> Result<()> {
    let layouts = launch.layouts.iter().map(|layout| &**layout);
    let sources = sources(launch.loads, layouts, &regions.reads)?;
    let mut writes: SmallVec<[&mut [u8]; 3]> = SmallVec::new();
    for write in regions.writes {
        writes.push(write.into_bytes()?);
    }
    let (outs, rest) = writes.split_at_mut(launch.outputs);
    let scratch: &mut [u8] = rest.first_mut().map_or(nothing(), |s| &mut **s);
    pool().run_until(launch.cost, launch.stop, |workers| {
        tile::run(launch.program, launch.domain, &sources, outs, scratch, workers)
    })
}

/// What the loads of a program read, now that bytes are lent.
pub fn sources<'a>(
    loads: &'a [ReadSource],
    layouts: impl IntoIterator<Item = &'a Layout>,
    lent: &[Region<'a>],
) -> Result<SmallVec<[tile::TileSource<'a>; 4]>> {
    let mut sources = SmallVec::new();
    for (from, layout) in loads.iter().zip(layouts) {
        let read = match from {
            ReadSource::Generator(generator) => tile::Read::Generator(generator),
            ReadSource::Output(output) => tile::Read::Output(*output),
            ReadSource::Range(i) => tile::Read::Slice(lent[*i].bytes()?),
        };
        sources.push(tile::TileSource { layout: Cow::Borrowed(layout), read });
    }
    Ok(sources)
}
