//! What a plan reads from files as it runs: tensors that stay in theirs.

use smallvec::SmallVec;
use tonnage_core::graph::Node;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::row::Lower;
use tonnage_core::{Bytes, Result};

use crate::budget::Machine;
use crate::place::Planner;
use crate::plan::{At, Plan, Run, Step, Streamed, TileRead};

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
        let mut streamed = SmallVec::new();
        for (i, id) in node.inputs.iter().enumerate() {
            if let (Lower::Streaming(_, reads), At::Recipe(recipe)) =
                (node.op.lower, &self.place(*id)?.at)
                && let Some((_, layout)) = recipe.as_stored()
                && self.graph.with_call(node, |call| reads(call, i, layout))
            {
                streamed.push((i, recipe.clone()));
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
        let streamed = self.streamed.iter().filter_map(|(_, recipe)| recipe.as_stored());
        let streamed = streamed.map(|(generator, layout)| bytes(generator, layout)).sum::<Bytes>();
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
