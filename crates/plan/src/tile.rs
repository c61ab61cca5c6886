//! Tile steps: what a program reads, and when its result can stay a recipe.
//!
//! Decision: `docs/decisions/reductions-are-not-in-place.md`.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::Node;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::Mem;
use tonnage_core::shape::{Sizes, TensorType};
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::{DType, Layout};
use tonnage_ops::tile::{Composed, TileLimits, chained, compose};

use crate::files::{self, is_there};
use crate::place::{Planner, most};
use crate::plan::{At, Placed, Run, TileRead, TileRun};

/// A node that is a tile program: a recipe where its result can stay one, a step otherwise.
pub(crate) fn node(planner: &mut Planner, node: &Node, program: &TileProgram) -> Result<()> {
    let graph = planner.graph();
    let domain = graph.with_call(node, |call| tonnage_ops::tile::domain(call, program))?;
    let domain = most(&TensorType::new(DType::U8, domain), node.op.name)?;
    let placed =
        node.inputs.iter().map(|id| planner.place(*id)).collect::<Result<Vec<&Placed>>>()?;
    let limits = planner.target().tile_limits();
    let run = ready(program, domain, &placed, &limits).ok_or_else(|| no_layout(node))?;
    let lazy = !planner.is_dynamic(node) && !matches!(node.op.mem, Mem::Update(_));
    let to_file = node.op.mem == Mem::File;
    let stays = |recipe: &Arc<Recipe>| lazy && (!to_file || is_there(recipe));
    if let Some(recipe) = as_recipe(&run, &limits).filter(stays) {
        planner.recipe(node, recipe);
        return Ok(());
    }
    // Recipes that could not be written into the program are in memory before it runs.
    for read in &run.reads {
        if let TileRead::Input(input, _) = read {
            planner.materialize(node, node.inputs[*input])?;
        }
    }
    if to_file {
        files::in_file(planner, node, run);
        return Ok(());
    }
    // A reduction reads its inputs while others of its results are written: never in place.
    let memory = match run.program.close {
        Close::Store => planner.outputs(node)?,
        Close::Reduce { .. } => planner.fresh_outputs(node)?,
    };
    let scratch = planner.target().tile_scratch(&run.program, &run.domain);
    planner.step(node, Run::Tile(Arc::new(run)), memory, scratch);
    Ok(())
}

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

/// The program that copies a value. `None` where its layout is none that can be read.
pub(crate) fn copy(dtype: DType, from: &Placed, limits: &TileLimits) -> Option<TileRun> {
    let mut program = TileProgram::loading(&[dtype]);
    program.store(0, dtype);
    ready(&program, from.layout.sizes.clone(), &[from], limits)
}

/// The program that makes a recipe's bytes.
pub fn materialize(recipe: &Recipe) -> TileRun {
    let read = |(generator, layout): &(_, Layout)| {
        TileRead::Generator(Generator::clone(generator), layout.clone())
    };
    let reads = recipe.sources.iter().map(read).collect();
    TileRun::new(recipe.program.clone(), recipe.sizes.clone(), reads)
}

/// The error of a node whose inputs no program can read as they lie.
pub(crate) fn no_layout(node: &Node) -> tonnage_core::Error {
    let what = format!("the inputs of {} do not broadcast to what it runs over", node.op.name);
    ErrorKind::BadGraph { what }.into()
}
