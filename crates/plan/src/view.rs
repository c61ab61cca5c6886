//! Views, which alias the bytes of another value, and values that are described rather than held.
//!
//! Where the data decide a size, a view is laid out as it runs, and planned here as if every such size were at its bound. One
//! whose own size is known, as that of a last element is, is copied as it runs: what reads it is planned with its layout. A
//! description of such a size is written out as it runs: nothing else could say how much of it there is.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::dim::{Dim, Symbol};
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::row::Call;
use tonnage_core::shape::TensorType;

use crate::place::{Planner, most};
use crate::plan::{At, Placed, Run, StepMemory, TileRun};
use crate::tile;

/// How a view lies over a layout.
type View = fn(&Call, &Layout) -> Option<Layout>;

/// A fill, a range, random numbers.
pub(crate) fn described(
    planner: &mut Planner,
    node: &Node,
    make: fn(&Call) -> Result<Recipe>,
) -> Result<()> {
    if !planner.is_dynamic(node) {
        let recipe = planner.graph().with_call(node, make)?;
        planner.recipe(node, Arc::new(recipe));
        return Ok(());
    }
    let recipe = with_call_at_bound(planner.graph(), node, make)?;
    written_out(planner, node, tile::materialize(&recipe))
}

/// A node that is a view.
pub(crate) fn node(planner: &mut Planner, node: &Node, view: View) -> Result<()> {
    match planner.is_dynamic(node) {
        true => view_as_it_runs(planner, node, view),
        false => view_now(planner, node, view),
    }
}

/// A view whose sizes are known.
fn view_now(planner: &mut Planner, node: &Node, view: View) -> Result<()> {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let placed = planner.place(input)?.clone();
    let sizes = most(planner.graph().ty(output), node.op.name)?;
    let made = planner.graph().with_call(node, |call| match &placed.at {
        At::Recipe(recipe) => {
            let recipe = recipe.view(sizes.clone(), |layout| view(call, layout))?;
            Some((At::Recipe(Arc::new(recipe)), Layout::contiguous(sizes.clone())))
        }
        at => Some((at.clone(), view(call, &placed.layout)?)),
    });
    let Some((at, layout)) = made else {
        // The elements do not lie in that order: a copy puts them so.
        let run = match &placed.at {
            At::Recipe(recipe) => tile::materialize(recipe),
            _ => copied(planner, node, &placed)?,
        };
        planner.fresh(node, output)?;
        planner.step(node, Run::Tile(Arc::new(run)), StepMemory::Allocates, Bytes::ZERO);
        return Ok(());
    };
    planner.put(output, Placed { at, layout });
    planner.note(node, StepMemory::Aliases);
    Ok(())
}

/// A view that is laid out as it runs.
fn view_as_it_runs(planner: &mut Planner, node: &Node, view: View) -> Result<()> {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let sizes = most(planner.graph().ty(output), node.op.name)?;
    if let At::Recipe(recipe) = &planner.place(input)?.at {
        let recipe = recipe.clone();
        let seen = with_call_at_bound(planner.graph(), node, |call| {
            recipe.view(sizes.clone(), |layout| view(call, layout))
        });
        if let Some(seen) = seen {
            let run = TileRun { recipes: vec![Some(recipe)], ..tile::materialize(&seen) };
            return written_out(planner, node, run);
        }
        planner.materialize(node, input)?;
    }
    let placed = planner.place(input)?.clone();
    let layout = with_call_at_bound(planner.graph(), node, |call| view(call, &placed.layout));
    let size_is_known = planner.graph().ty(output).shape.sizes().is_some();
    match layout.filter(|_| !size_is_known) {
        Some(layout) => {
            let at_bound = Placed { layout: Layout { sizes, ..layout }, ..placed };
            planner.put_late(output, at_bound);
            planner.note(node, StepMemory::Aliases);
            Ok(())
        }
        // Readers know the size and would not ask for the layout; or as they lie at their bound, the elements do not lie in that
        // order; or bounds do not say.
        None => {
            let run = copied(planner, node, &placed)?;
            planner.fresh(node, output)?;
            planner.step(node, Run::Tile(Arc::new(run)), StepMemory::Allocates, Bytes::ZERO);
            Ok(())
        }
    }
}

/// The program that copies the node's input.
fn copied(planner: &Planner, node: &Node, placed: &Placed) -> Result<TileRun> {
    let dtype = planner.graph().ty(node.inputs[0]).dtype;
    tile::copy(dtype, placed, &planner.target().tile_limits()).ok_or_else(|| tile::no_layout(node))
}

/// A step that writes out what the node describes.
fn written_out(planner: &mut Planner, node: &Node, run: TileRun) -> Result<()> {
    planner.fresh(node, node.outputs[0])?;
    let (run, writes) = (Run::Tile(Arc::new(run)), node.outputs.iter().copied().collect());
    planner.push(node, run, StepMemory::Allocates, Bytes::ZERO, SmallVec::new(), writes);
    Ok(())
}

/// Calls with the types that a node has where every size that the data decide is at its bound.
fn with_call_at_bound<R>(graph: &Graph, node: &Node, use_call: impl FnOnce(&Call) -> R) -> R {
    let bound = |symbol: &Symbol| symbol.bound()?.most().map(Dim::Known);
    let at_bound = |id: &ValueId| graph.ty(*id).substitute(&bound);
    let types: SmallVec<[TensorType; 2]> = node.inputs.iter().map(at_bound).collect();
    let attrs = node.attrs.substitute(&bound);
    use_call(&Call { op: node.op.name, inputs: &types, attrs: &attrs, regions: &[] })
}
