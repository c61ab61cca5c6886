//! Elements outside of memory as tile programs read them: how a run is read.
//!
//! A tile that follows memory is one read of 4 KiB straight into its register, so a pass over a file of any size takes no
//! memory but the registers.

use std::borrow::Cow;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::recipe::{Elements, Generator};
use tonnage_core::tile::TileProgram;
use tonnage_ops::tile::file_order::FileOrder;

use super::source::{Read, TileSource};

/// Bytes that are looked at together where elements lie apart.
pub const SPAN: usize = 4096;

/// Fills `out` with elements of `size` bytes, from a position on and a stride apart.
pub fn read(from: &dyn Elements, size: usize, (at, stride): (usize, isize), out: &mut [u8]) {
    match stride {
        1 => from.read(at as u64, out),
        0 => {
            let (first, rest) = out.split_at_mut(size);
            from.read(at as u64, first);
            rest.chunks_exact_mut(size).for_each(|x| x.copy_from_slice(first));
        }
        _ => {
            // As many as lie within a span, of which the others are passed over.
            let apart = stride.unsigned_abs();
            let most = SPAN / size;
            let together = 1 + (most - 1) / apart;
            let mut span = [0u8; SPAN];
            for (i, part) in out.chunks_mut(together * size).enumerate() {
                let count = part.len() / size;
                let reach = (count - 1) * apart;
                let first = at as isize + (i * together) as isize * stride;
                let low = if stride < 0 { first - reach as isize } else { first };
                let span = &mut span[..(reach + 1) * size];
                from.read(low as u64, span);
                for (j, x) in part.chunks_exact_mut(size).enumerate() {
                    let at = if stride < 0 { reach - j * apart } else { j * apart };
                    x.copy_from_slice(&span[at * size..(at + 1) * size]);
                }
            }
        }
    }
}

/// Whether everything could be read.
pub fn check(sources: &[TileSource]) -> Result<()> {
    sources.iter().try_for_each(|source| match source.read {
        Read::Generator(Generator::Stored { elements, .. }) => elements.0.check(),
        _ => Ok(()),
    })
}

/// The order in which a reduction goes through the files that it reads, where its own would not do.
pub fn file_order(program: &TileProgram, sources: &[TileSource]) -> Option<FileOrder> {
    let stored = sources
        .iter()
        .filter(|source| matches!(source.read, Read::Generator(Generator::Stored { .. })));
    FileOrder::of(program, stored.map(|source| &*source.layout))
}

/// What is read, in that order.
pub fn reordered<'a>(
    order: &FileOrder,
    sources: &[TileSource<'a>],
) -> SmallVec<[TileSource<'a>; 4]> {
    let source = |source: &TileSource<'a>| TileSource {
        layout: Cow::Owned(order.layout(&source.layout)),
        read: source.read,
    };
    sources.iter().map(source).collect()
}
