//! Elements outside of memory as tile programs read them: when they are better read whole.
//!
//! A read costs about as much as 2 KiB do: what would be read in many small pieces is brought into memory first.
//!
//! Decision: `docs/decisions/file-tensors-are-recipes.md`.

use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;

/// Elements side by side that are worth a read of their own.
pub const RUN: usize = 64;

/// What is broadcast, and so read several times, is read once where it takes no more than this.
const SMALL: usize = 1 << 20;

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

/// Whether elements lie side by side in the order of a layout, as many as are worth a read: otherwise they are better
/// brought into memory first.
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
