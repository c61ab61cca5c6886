//! What a plan reads from files as it runs: tensors that stay in theirs.

use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};

use crate::budget::Machine;
use crate::plan::{Plan, Run, Step, TileRead};

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
