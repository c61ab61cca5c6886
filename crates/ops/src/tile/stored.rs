//! Elements outside of memory as tile programs read them: how a run is read, and when they are better read whole.
//!
//! A tile that follows memory is one read of 4 KiB straight into its register, so a pass over a file of any size takes no
//! memory but the registers. A read costs about as much as 2 KiB do: what would be read in many small pieces is brought
//! into memory first.
//!
//! Decision: `docs/decisions/file-tensors-are-recipes.md`.

use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Elements, Generator, Recipe};

use super::source::{Read, TileSource};

/// Elements side by side that are worth a read of their own.
pub const RUN: usize = 64;

/// What is broadcast, and so read several times, is read once where it takes no more than this.
const SMALL: usize = 1 << 20;

/// Bytes that are looked at together where elements lie apart.
pub const SPAN: usize = 4096;

/// Whether a recipe is small and read from outside, and broadcast to a domain: it is brought into memory first.
pub fn is_read_often(recipe: &Recipe, domain: &[usize]) -> bool {
    let count = |sizes: &[usize]| sizes.iter().fold(1usize, |n, size| n.saturating_mul(*size));
    let all = count(&recipe.sizes);
    count(domain) > all
        && all.saturating_mul(recipe.dtype().size()) <= SMALL
        && layouts(recipe).next().is_some()
}

/// The layouts in which a recipe reads from outside.
pub fn layouts(recipe: &Recipe) -> impl Iterator<Item = &Layout> {
    let stored = recipe.sources.iter().filter(|(generator, _)| generator.is_stored());
    stored.map(|(_, layout)| layout)
}

/// Whether a recipe can be computed from its start to its end a part at a time, without reading a file in small pieces.
pub fn in_order(recipe: &Recipe) -> bool {
    layouts(recipe).all(in_runs)
}

/// Whether elements lie side by side in the order of a layout, as many as are worth a read: otherwise they are better brought into
/// memory first.
pub fn in_runs(layout: &Layout) -> bool {
    let axes = layout.sizes.iter().zip(&layout.strides);
    let there = axes.filter(|(_, stride)| **stride != 0);
    let all = there.fold(1usize, |n, (size, _)| n.saturating_mul(*size));
    run(layout) >= RUN.min(all)
}

/// How many elements lie side by side in the order of the layout, at least.
pub fn run(layout: &Layout) -> usize {
    let mut run = 1usize;
    for (size, stride) in layout.sizes.iter().zip(&layout.strides).rev() {
        match *stride {
            _ if *size == 1 => {}
            stride if stride == run as isize => run = run.saturating_mul(*size),
            _ => break,
        }
    }
    run
}

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
