//! What a plan reads from files as it runs: tensors that stay in theirs, and which steps leave them there.

use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Node;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::Lower;

use crate::budget::Machine;
use crate::place::Planner;
use crate::plan::{At, Plan, Run, Step, Streamed, TileRead};

/// An input that a step's kernel reads from a file as it goes.
#[derive(Debug, Clone)]
pub struct StreamedInput {
    /// Which.
    pub input: usize,
    /// What lies there: a later step may bring the same value into memory.
    pub recipe: Arc<Recipe>,
    /// Elements of it that are read.
    pub count: usize,
}

impl Plan {
    /// What a call reads from files, in steps of its own (what bodies of loops read is not counted): each step that uses a tensor in a
    /// file reads it again. It is no part of the peak.
    pub fn reads(&self) -> Bytes {
        self.steps.iter().map(Step::reads_stored).sum()
    }

    /// Seconds that reading takes, at the rate that was measured for files.
    pub fn seconds_of_reads(&self, machine: &Machine) -> f64 {
        match machine.has_disk() {
            true => self.reads().get() as f64 / machine.read,
            false => self.reads().get() as f64 / Machine::DEFAULT.read,
        }
    }
}

impl Planner<'_> {
    /// Makes every input of a node that is a recipe resident, but for what its kernel reads from outside of memory: those are handed back.
    pub(crate) fn in_memory(&mut self, node: &Node) -> Result<Streamed> {
        let mut streamed = Streamed::new();
        for (i, id) in node.inputs.iter().enumerate() {
            if let (Lower::Streaming { reads, .. }, At::Recipe(recipe)) =
                (node.op.lower, &self.place(*id)?.at)
                && let Some((_, layout)) = recipe.as_stored()
                && let Some(count) = self.graph.with_call(node, |call| reads(call, i, layout))
            {
                streamed.push(StreamedInput { input: i, recipe: recipe.clone(), count });
                continue;
            }
            self.materialize(node, *id)?;
        }
        Ok(streamed)
    }
}

impl Step {
    /// What it reads from files.
    pub(crate) fn reads_stored(&self) -> Bytes {
        let read = |of: &StreamedInput| Bytes::of(of.count * of.recipe.dtype().size());
        let streamed = self.streamed.iter().map(read).sum::<Bytes>();
        let Run::Tile(run) = &self.run else { return streamed };
        let tiles = run.reads.iter().map(|read| match read {
            TileRead::Generator(generator, layout) if generator.is_stored() => {
                bytes(generator, layout)
            }
            TileRead::Generator(..) | TileRead::Input(..) => Bytes::ZERO,
        });
        streamed + tiles.sum()
    }
}

/// Every element as often as it is read.
fn bytes(generator: &Generator, layout: &Layout) -> Bytes {
    Bytes::of(layout.count() * generator.dtype().size())
}
