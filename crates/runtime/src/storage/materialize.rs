//! Recipes written out: into a buffer of any device, or a part of one into host memory.

use smallvec::SmallVec;
use std::borrow::Cow;
use tonnage_core::recipe::Recipe;
use tonnage_core::{Bytes, Kind, Result};
use tonnage_cpu::tile;
use tonnage_cpu::workers::Workers;
use tonnage_ops::tile::in_order;

use crate::backend::{ReadSource, TileLaunch};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::{Ledger, Owner};
use crate::lend::{ByteRange, Lender};
use crate::pool::{op_stop, pool};

/// What a recipe would take; a figure that is over every limit where that overflows.
pub(super) fn bytes_of(recipe: &Recipe) -> Bytes {
    let count = recipe.sizes.iter().fold(1u64, |n, size| n.saturating_mul(*size as u64));
    Bytes::new(count.saturating_mul(recipe.dtype().size() as u64))
}

/// The bytes of a recipe.
pub(crate) fn materialize(recipe: &Recipe, ledger: &Ledger, owner: Owner) -> Result<Buffer> {
    let (what, source) = (owner.what, owner.source);
    let staging = Owner { kind: Kind::Staging, ..owner.clone() };
    let mut buffer = Buffer::obtain(ledger, recipe.ty().bytes(what)?, owner)?;
    let backend = ledger.backend();
    let reads_file = recipe.sources.iter().any(|(generator, _)| generator.is_stored());
    if !ledger.is_host() && reads_file && in_order(recipe) {
        return in_pieces(recipe, ledger, staging, &mut buffer).map(|()| buffer);
    }
    let mut lender = Lender::new(backend);
    lender.lend_for(Some(source));
    let base = lender.add(&mut buffer);
    let out = ByteRange { base, offset: 0, len: recipe.ty().bytes(what)?.as_usize(), align: 1 };
    let loads: SmallVec<[ReadSource; 4]> = recipe
        .sources
        .iter()
        .map(|(generator, _)| ReadSource::Generator(generator.clone()))
        .collect();
    let cost = cost(recipe, out.len);
    let stop = op_stop(cost);
    let launch = TileLaunch {
        program: &recipe.program,
        domain: &recipe.sizes,
        loads: &loads,
        layouts: recipe.sources.iter().map(|(_, layout)| layout).collect(),
        outputs: 1,
        cost,
        stop: stop.as_ref(),
    };
    backend.tile(&launch, lender.lend(&[], &[out])?)?;
    drop(lender);
    Ok(buffer)
}

/// What is in host memory at once of a file that a device reads.
const PIECE: usize = 4 << 20;

/// Brings a recipe that reads files to a device, a piece at a time.
fn in_pieces(recipe: &Recipe, ledger: &Ledger, staging: Owner, to: &mut Buffer) -> Result<()> {
    let size = recipe.dtype().size();
    let count = to.len() / size;
    let at_once = (PIECE / size).min(count);
    let mut piece = Buffer::obtain(&host_ledger(), Bytes::of(at_once * size), staging)?;
    piece.pin(ledger.backend());
    for first in (0..count).step_by(at_once.max(1)) {
        let piece = &mut piece.bytes_mut()?[..at_once.min(count - first) * size];
        write_part(recipe, first, piece)?;
        to.copy_in(first * size, piece)?;
    }
    Ok(())
}

/// Writes a recipe's elements one after the other.
pub(crate) fn write_recipe(recipe: &Recipe, out: &mut [u8]) -> Result<()> {
    let sources = sources(recipe);
    pool().run_op(cost(recipe, out.len()), |workers: &dyn Workers| {
        tile::run(&recipe.program, &recipe.sizes, &sources, &mut [out], &mut [], workers)
    })
}

/// Writes as many of a recipe's elements as there is room for, from one on.
///
/// # Errors
/// Where it reads a file that fails.
pub fn write_part(recipe: &Recipe, first: usize, out: &mut [u8]) -> Result<()> {
    let (sources, count) = (sources(recipe), out.len() / recipe.dtype().size());
    pool().run_op(cost(recipe, out.len()), |workers: &dyn Workers| {
        tile::run_part(&recipe.program, &sources, first, count, &mut [out], workers)
    })
}

fn sources(recipe: &Recipe) -> Vec<tile::TileSource<'_>> {
    let mut sources = Vec::with_capacity(recipe.sources.len());
    for (generator, layout) in &recipe.sources {
        let read = tile::Read::Generator(generator);
        sources.push(tile::TileSource { layout: Cow::Borrowed(layout), read });
    }
    sources
}

fn cost(recipe: &Recipe, bytes: usize) -> tonnage_core::row::Cost {
    let count = bytes / recipe.dtype().size().max(1);
    let flops = recipe.program.flops() * count as u64;
    tonnage_core::row::Cost::local(flops, bytes as u64)
}
