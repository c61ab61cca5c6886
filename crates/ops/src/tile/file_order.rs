//! Reductions over files that lie in another order than their axes are counted in (columns first, or transposed): over the same
//! elements, in the order of the file. Read in the order of the axes, each element would be a read of its own.
//!
//! The order decides which elements are combined first, so a sum may be rounded otherwise than that of the same numbers in
//! memory.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Close, Form, TileProgram};

use super::stored;

/// Axes of a domain in another order.
pub struct FileOrder(SmallVec<[usize; 4]>);

impl FileOrder {
    /// For a reduction that reads files in those layouts over its domain. `None` where its own order will do, or no other would.
    pub fn of<'a>(
        program: &TileProgram,
        layouts: impl Iterator<Item = &'a Layout> + Clone,
    ) -> Option<FileOrder> {
        let Close::Reduce { axes, .. } = &program.close else { return None };
        let first = layouts.clone().find(|layout| !stored::in_runs(layout))?;
        // Bits lie in the order of the domain.
        if program.loads.contains(&Form::Bits) {
            return None;
        }
        let mut order: SmallVec<[usize; 4]> = (0..first.sizes.len()).collect();
        // Broadcast axes come first: the rest is walked once for each of their positions.
        order.sort_by_key(|&i| (first.strides[i] != 0, -first.strides[i]));
        let order = FileOrder(order);
        // Results stay in the order of their axes.
        let kept = order.0.iter().filter(|i| first.sizes[**i] > 1 && !axes.contains(i));
        let sorted = kept.is_sorted();
        (sorted && layouts.into_iter().all(|layout| stored::in_runs(&order.layout(layout))))
            .then_some(order)
    }

    /// The same for recipes that are broadcast to its domain.
    pub fn of_recipes(
        program: &TileProgram,
        recipes: &[Option<&Recipe>],
        domain: &[usize],
    ) -> Option<FileOrder> {
        let read = recipes.iter().flatten().flat_map(|recipe| &recipe.sources);
        let stored = read.filter(|(generator, _)| is_outside(generator));
        let layouts: Option<SmallVec<[Layout; 2]>> =
            stored.map(|(_, layout)| layout.broadcast_to(domain)).collect();
        FileOrder::of(program, layouts?.iter())
    }

    /// A domain in that order.
    pub fn domain(&self, sizes: &[usize]) -> Sizes {
        self.0.iter().map(|i| sizes[*i]).collect()
    }

    /// Axes of it, sorted.
    pub fn axes(&self, axes: &[usize]) -> Sizes {
        (0..self.0.len()).filter(|at| axes.contains(&self.0[*at])).collect()
    }

    /// A layout over it.
    pub fn layout(&self, layout: &Layout) -> Layout {
        Layout {
            sizes: self.domain(&layout.sizes),
            strides: self.0.iter().map(|i| layout.strides[*i]).collect(),
            offset: layout.offset,
        }
    }
}

/// Whether it is read from a file that the system does not show as memory. What a call brings is one as well.
fn is_outside(generator: &Generator) -> bool {
    match generator {
        Generator::Stored { elements, .. } => elements.0.mapped().is_none(),
        generator => generator.is_stored(),
    }
}
