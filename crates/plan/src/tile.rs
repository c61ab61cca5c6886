//! Tile steps: what a program reads, and when its result can stay a recipe.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Form, TileProgram};
use tonnage_ops::tile::{Composed, TileLimits, chained, compose};

use crate::plan::{At, Placed, TileRead, TileRun};

/// The program with recipes written out, and what its loads read: an input that it still reads has to be in
/// memory. `None` where a layout does not broadcast to the domain.
pub fn ready(
    program: &TileProgram,
    domain: Sizes,
    inputs: &[&Placed],
    limits: &TileLimits,
) -> Option<TileRun> {
    let mut recipes: SmallVec<[Option<&Recipe>; 4]> = inputs
        .iter()
        .map(|p| match &p.at {
            At::Recipe(recipe) => Some(&**recipe),
            _ => None,
        })
        .collect();
    let (program, composed) = compose(program, &mut recipes, &domain, limits)?;
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
    let recipe = |placed: &&Placed| match &placed.at {
        At::Recipe(recipe) => Some(recipe.clone()),
        _ => None,
    };
    let recipes = inputs.iter().map(recipe).collect();
    Some(TileRun { recipes, ..TileRun::new(program, domain, reads) })
}

/// The result as a recipe, where it can be one.
pub fn as_recipe(run: &TileRun, limits: &TileLimits) -> Option<Arc<Recipe>> {
    let generators = run.reads.iter().map(|read| match read {
        TileRead::Generator(generator, layout) => Some((generator, layout)),
        TileRead::Input(..) => None,
    });
    chained(&run.program, generators, &run.domain, limits).map(Arc::new)
}

/// The program that makes a recipe's bytes.
pub fn materialize(recipe: &Recipe) -> TileRun {
    let read = |(generator, layout): &(_, Layout)| {
        TileRead::Generator(Generator::clone(generator), layout.clone())
    };
    let reads = recipe.sources.iter().map(read).collect();
    TileRun::new(recipe.program.clone(), recipe.sizes.clone(), reads)
}
