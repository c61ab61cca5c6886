//! Elements outside of memory as tile programs read them: how a run is read, when they are better read whole, and how they are
//! turned round on the way.
//!
//! A tile that follows memory is one read of 4 KiB straight into its register, so a pass over a file of any size takes no
//! memory but the registers. A read costs about as much as 2 KiB do: what would be read in many small pieces is brought
//! into memory first.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Elements, Generator, Recipe};
use tonnage_core::tile::{Close, Form, TileProgram};

use super::source::{Read, Source};

/// Elements side by side that are worth a read of their own.
const RUN: usize = 64;

/// What is stretched, and so read several times, is read once where it takes no more than this.
const SMALL: usize = 1 << 20;

/// Bytes that are looked at together where elements lie apart.
const SPAN: usize = 4096;

/// Whether a recipe is small and read from outside, and stretched to a domain: it is brought into memory first.
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
fn run(layout: &Layout) -> usize {
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
pub fn check(sources: &[Source]) -> Result<()> {
    sources.iter().try_for_each(|source| match source.read {
        Read::Generator(Generator::Stored { elements, .. }) => elements.0.check(),
        _ => Ok(()),
    })
}

/// Copies what lies in another order than it is wanted in: in the order of the file, each element to its place. `false` where that is not what
/// the program does, or would be no quicker.
pub fn turned(
    program: &TileProgram,
    domain: &[usize],
    sources: &[Source],
    outputs: &mut [&mut [u8]],
) -> Result<bool> {
    let copies = program.code.is_empty()
        && program.close == Close::Store
        && matches!((program.loads.as_slice(), program.stores.as_slice()),
            ([load @ Form::Elements(_)], [(0, store)]) if load == store);
    let (true, [source], [out]) = (copies, sources, outputs) else { return Ok(false) };
    let Read::Generator(Generator::Stored { elements, dtype }) = source.read else {
        return Ok(false);
    };
    if elements.0.mapped().is_some() {
        return Ok(false);
    }
    let layout = &source.layout;
    let along = (0..domain.len()).find(|i| layout.strides[*i] == 1 && domain[*i] >= RUN);
    let Some(along) = along.filter(|_| run(layout) < RUN && !out.is_empty()) else {
        return Ok(false);
    };
    let size = dtype.size();
    // Where each axis goes in the result.
    let mut steps: SmallVec<[usize; 6]> = SmallVec::from_elem(1, domain.len());
    for i in (0..domain.len().saturating_sub(1)).rev() {
        steps[i] = steps[i + 1] * domain[i + 1];
    }
    let mut others: SmallVec<[usize; 6]> = (0..domain.len()).filter(|i| *i != along).collect();
    others.sort_by_key(|i| std::cmp::Reverse(layout.strides[*i].unsigned_abs()));
    let runs: usize = others.iter().map(|i| domain[*i]).product();
    let mut part = [0u8; SPAN];
    for mut number in 0..runs {
        let (mut from, mut to) = (layout.offset as isize, 0);
        for i in others.iter().rev() {
            let index = number % domain[*i];
            number /= domain[*i];
            from += index as isize * layout.strides[*i];
            to += index * steps[*i];
        }
        for first in (0..domain[along]).step_by(SPAN / size) {
            let count = (SPAN / size).min(domain[along] - first);
            let part = &mut part[..count * size];
            elements.0.read(from as u64 + first as u64, part);
            for (i, x) in part.chunks_exact(size).enumerate() {
                let at = (to + (first + i) * steps[along]) * size;
                out[at..at + size].copy_from_slice(x);
            }
        }
    }
    check(sources)?;
    Ok(true)
}
