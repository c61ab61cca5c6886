//! Views, which alias the bytes of another value, and values that are described rather than held. Part of [`Planner`].
//!
//! Where the data decide a size, a view is laid out as it runs, and planned here as if every such size were at its bound. A
//! description of such a size is written out as it runs: nothing else could say how much of it there is.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::dim::{Dim, Symbol};
use tonnage_core::error::Result;
use tonnage_core::graph::{Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::row::Call;
use tonnage_core::shape::TensorType;
use tonnage_core::tile::TileProgram;

use crate::place::{Planner, most, no_layout};
use crate::plan::{At, Placed, Run, StepMemory, TileRun};
use crate::tile;
use tonnage_core::bytes::Bytes;

/// How a view lies over a layout.
type View = fn(&Call, &Layout) -> Option<Layout>;

impl Planner<'_> {
    /// A fill, a range, random numbers.
    pub fn described(&mut self, node: &Node, make: fn(&Call) -> Result<Recipe>) -> Result<()> {
        if !self.is_dynamic(node) {
            let recipe = self.graph.with_call(node, make)?;
            self.recipe(node, Arc::new(recipe));
            return Ok(());
        }
        let recipe = self.with_call_at_bound(node, make)?;
        self.written_out(node, tile::materialize(&recipe))
    }

    pub fn view(&mut self, node: &Node, view: View) -> Result<()> {
        match self.is_dynamic(node) {
            true => self.view_as_it_runs(node, view),
            false => self.view_now(node, view),
        }
    }

    fn view_now(&mut self, node: &Node, view: View) -> Result<()> {
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let placed = self.place(input)?.clone();
        let sizes = most(self.graph.ty(output), node.op.name)?;
        let made = self.graph.with_call(node, |call| match &placed.at {
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
                _ => self.copying(node, &placed)?,
            };
            self.fresh(node, output)?;
            self.step(node, Run::Tile(Arc::new(run)), StepMemory::Allocates, Bytes::ZERO);
            return Ok(());
        };
        self.places.put(output, Placed { at, layout });
        self.note(node, StepMemory::Aliases);
        Ok(())
    }

    fn view_as_it_runs(&mut self, node: &Node, view: View) -> Result<()> {
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let sizes = most(self.graph.ty(output), node.op.name)?;
        if let At::Recipe(recipe) = &self.place(input)?.at {
            let recipe = recipe.clone();
            let seen = self.with_call_at_bound(node, |call| {
                recipe.view(sizes.clone(), |layout| view(call, layout))
            });
            if let Some(seen) = seen {
                let run = TileRun { recipes: vec![Some(recipe)], ..tile::materialize(&seen) };
                return self.written_out(node, run);
            }
            self.materialize(node, input)?;
        }
        let placed = self.place(input)?.clone();
        let layout = self.with_call_at_bound(node, |call| view(call, &placed.layout));
        match layout {
            Some(layout) => {
                let at_bound = Placed { layout: Layout { sizes, ..layout }, ..placed };
                self.places.put_late(output, at_bound);
                self.note(node, StepMemory::Aliases);
                Ok(())
            }
            // As they lie at their bound, the elements do not lie in that order; or bounds do not say.
            None => {
                let run = self.copying(node, &placed)?;
                self.fresh(node, output)?;
                self.step(node, Run::Tile(Arc::new(run)), StepMemory::Allocates, Bytes::ZERO);
                Ok(())
            }
        }
    }

    fn copying(&self, node: &Node, placed: &Placed) -> Result<TileRun> {
        let dtype = self.graph.ty(node.inputs[0]).dtype;
        let mut program = TileProgram::loading(&[dtype]);
        program.store(0, dtype);
        let domain = placed.layout.sizes.clone();
        tile::ready(&program, domain, &[placed], &self.options.target.tile_limits())
            .ok_or_else(|| no_layout(node))
    }

    /// A step that writes out what the node describes.
    fn written_out(&mut self, node: &Node, run: TileRun) -> Result<()> {
        self.fresh(node, node.outputs[0])?;
        let (run, writes) = (Run::Tile(Arc::new(run)), node.outputs.iter().copied().collect());
        self.push(node, run, StepMemory::Allocates, Bytes::ZERO, SmallVec::new(), writes);
        Ok(())
    }

    fn with_call_at_bound<R>(&self, node: &Node, use_call: impl FnOnce(&Call) -> R) -> R {
        let bound = |symbol: &Symbol| symbol.bound()?.most().map(Dim::Known);
        let at_bound = |id: &ValueId| self.graph.ty(*id).substitute(&bound);
        let types: SmallVec<[TensorType; 2]> = node.inputs.iter().map(at_bound).collect();
        let attrs = node.attrs.substitute(&bound);
        use_call(&Call { op: node.op.name, inputs: &types, attrs: &attrs, regions: &[] })
    }
}
