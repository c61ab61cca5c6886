//! A program that stores, run over what a kernel makes while that is still in cache.
//!
//! Decision: `docs/decisions/epilogues.md`.

use bytemuck::cast_slice_mut;
use smallvec::smallvec;
use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_core::tile::TileProgram;

use super::ready::{MOST_SLOTS, Ready, TileSlot};
use super::source::TileSource;
use super::store::each_tile;
use crate::kernel::{Epilogue, Parts};
use crate::workers::{Workers, for_each_chunk};

/// A program with one store, in place: it reads the kernel's output as [`Read::Output(0)`](super::Read::Output). It is large and
/// stays where it is made.
pub struct TileEpilogue<'a>(Ready<'a>);

impl<'a> TileEpilogue<'a> {
    /// Of a program that is not resolved yet.
    pub fn of(program: &'a TileProgram) -> TileEpilogue<'a> {
        TileEpilogue(Ready::empty(program))
    }

    /// Resolves the program for what it reads.
    pub fn resolve(&mut self, sources: &'a [TileSource<'a>]) -> Result<()> {
        self.0.resolve(sources)
    }

    fn run<const SLOTS: usize>(&self, parts: &mut dyn Parts) {
        let mut slots = [TileSlot::EMPTY; SLOTS];
        let size = match self.0.program.stores.first() {
            Some((_, form)) => form.register().size(),
            None => return,
        };
        for i in 0..parts.count() {
            let (first, bytes) = parts.part(i);
            let count = bytes.len() / size;
            each_tile(&self.0, count, smallvec![bytes], |done, len, mut parts| {
                self.0.eval(first + done, len, &mut parts, &mut slots);
            });
        }
    }
}

impl Epilogue for TileEpilogue<'_> {
    fn apply(&self, parts: &mut dyn Parts) {
        match self.0.slots {
            0..=2 => self.run::<2>(parts),
            3..=6 => self.run::<6>(parts),
            7..=12 => self.run::<12>(parts),
            _ => self.run::<MOST_SLOTS>(parts),
        }
    }
}

/// Finishes an output that is whole, for a kernel that has no better moment for it.
pub fn apply_epilogue<T: Element>(
    epilogue: &dyn Epilogue,
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    /// Elements of a part: as much as a thread is worth.
    const PART: usize = 16 * 1024;
    for_each_chunk(workers, out, PART, &|i, part| {
        epilogue.apply(&mut (i * PART, cast_slice_mut(part)));
    })
}
