//! Tile steps: what a program reads, and when its result can stay a recipe.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::Layout;
use tonnage_core::error::Result;
use tonnage_core::graph::{Node, ValueId};
use tonnage_core::recipe::{LONGEST, Recipe, WIDEST};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_ops::tile::{Composed, compose};

use crate::place::{Planner, no_layout};
use crate::plan::{At, Placed, TileRead, TileRun};

/// What a tile step reads at most, recipes written out: each read takes a register.
pub const MOST_READS: usize = 20;

/// The program with recipes written out, and what its loads read. `None` where a layout does not
/// stretch to the domain.
pub fn ready(program: &TileProgram, domain: Sizes, inputs: &[&Placed]) -> Option<TileRun> {
    let recipes: SmallVec<[Option<&Recipe>; 4]> = inputs
        .iter()
        .map(|p| match &p.at {
            At::Recipe(recipe) => Some(&**recipe),
            _ => None,
        })
        .collect();
    let (program, composed) = compose(program, &recipes, &domain)?;
    let reads = composed
        .into_iter()
        .zip(&program.loads)
        .map(|(read, form)| {
            Some(match read {
                Composed::Generator(generator, layout) => TileRead::Generator(generator, layout),
                Composed::Input(i) => TileRead::Input(
                    i,
                    match form {
                        Form::Bits => inputs[i].layout.clone(),
                        Form::Elements(_) => inputs[i].layout.broadcast_to(&domain)?,
                    },
                ),
            })
        })
        .collect::<Option<Vec<_>>>()?;
    Some(TileRun { program, domain, reads })
}

/// The result as a recipe, where nothing that it reads is in memory and it is short enough.
pub fn as_recipe(run: &TileRun) -> Option<Arc<Recipe>> {
    let chains = run.program.close == Close::Store
        && run.program.stores.len() == 1
        && matches!(run.program.stores[0].1, Form::Elements(_))
        && run.program.code.len() <= LONGEST
        && run.reads.len() <= WIDEST;
    if !chains {
        return None;
    }
    let sources = run
        .reads
        .iter()
        .map(|read| match read {
            TileRead::Generator(generator, layout) => Some((*generator, layout.clone())),
            TileRead::Input(..) => None,
        })
        .collect::<Option<SmallVec<[_; 1]>>>()?;
    Some(Arc::new(Recipe { program: run.program.clone(), sources, sizes: run.domain.clone() }))
}

/// The program that makes a recipe's bytes.
pub fn materialize(recipe: &Recipe) -> TileRun {
    TileRun {
        program: recipe.program.clone(),
        domain: recipe.sizes.clone(),
        reads: recipe
            .sources
            .iter()
            .map(|(generator, layout): &(_, Layout)| {
                TileRead::Generator(*generator, layout.clone())
            })
            .collect(),
    }
}

impl Planner<'_> {
    /// What a tile step runs, as its inputs lie now.
    pub fn tile_run(&self, node: &Node, program: &TileProgram, domain: &Sizes) -> Result<TileRun> {
        let placed =
            node.inputs.iter().map(|id| self.place(*id)).collect::<Result<Vec<&Placed>>>()?;
        ready(program, domain.clone(), &placed).ok_or_else(|| no_layout(node))
    }

    /// The input that is a recipe of the most sources, of those with several.
    pub fn widest_recipe(&self, node: &Node) -> Option<ValueId> {
        let sources = |id: &ValueId| match &self.places[id.index()].as_ref()?.at {
            At::Recipe(recipe) => Some((recipe.sources.len(), *id)),
            _ => None,
        };
        let widest = node.inputs.iter().filter_map(sources).max_by_key(|(n, _)| *n);
        widest.filter(|(n, _)| *n > 1).map(|(_, id)| id)
    }
}
