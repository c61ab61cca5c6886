//! What a plan reads from files as it runs: tensors that stay in theirs.

use tonnage_core::Bytes;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;

use crate::budget::Machine;
use crate::plan::{Plan, Run, Step, TileRead};

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
